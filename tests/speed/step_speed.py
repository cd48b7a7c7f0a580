"""Measures a training step with muster's DistributedOptimizer and with DistributedDataParallel over gloo: same model, same data, one run, in turn.

    muster run -n 2 --slots-per-node 2 -- python3 tests/speed/step_speed.py --json speed.json

Of each way: a step (zero_grad, forward, backward, step), what it takes beyond the step of one process that reduces nothing ("alone", run at the same moment on
all ranks), the processor time of all threads of rank 0 in it, and the reduction of gradients that are there already. Times in milliseconds: medians over the rounds, with the lowest and highest. On one machine
the ranks share its cores; an idle machine is a condition, so the load before and after is written beside the numbers.
"""

import argparse
import json
import os
import platform
import statistics
import time
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import muster
import muster.distributed  # the backend "muster", for torch before 2.5
import muster.torch as hvd

# ------------------------------------------------------------------------------------------------ what is trained


class Mnist(torch.nn.Module):
    """The network of many MNIST examples: 2 convolutions, 2 linear layers, 21,840 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 10, 5), torch.nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = torch.nn.Linear(320, 50), torch.nn.Linear(50, 10)

    def forward(self, data):
        pool, relu = torch.nn.functional.max_pool2d, torch.nn.functional.relu
        data = relu(pool(self.conv2(relu(pool(self.conv1(data), 2))), 2))
        return self.fc2(relu(self.fc1(data.flatten(1))))


class Tensors(torch.nn.Module):
    """Parameters of given shapes, each multiplied by numbers: gradients come one after the other, for as little computing as can be."""

    def __init__(self, shapes):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(shape) * 0.01) for shape in shapes])

    def forward(self, data):
        return sum(torch.dot(weight.view(-1), data[: weight.numel()]) for weight in self.weights)


def resnet50_shapes():
    """Returns the shapes of the 161 parameters of ResNet-50: 25,557,032 numbers."""
    shapes = [(64, 3, 7, 7), (64,), (64,)]
    inward = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += [(width, inward, 1, 1), (width,), (width,), (width, width, 3, 3), (width,), (width,), (4 * width, width, 1, 1), (4 * width,), (4 * width,)]
            if block == 0:
                shapes += [(4 * width, inward, 1, 1), (4 * width,), (4 * width,)]
            inward = 4 * width
    return shapes + [(1000, 2048), (1000,)]


def mnist():
    return Mnist(), (torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))), lambda out, target: torch.nn.functional.cross_entropy(out, target)


def tensors(shapes):
    longest = max(torch.Size(shape).numel() for shape in shapes)
    return Tensors(shapes), (torch.randn(longest) * 0.01, None), lambda out, target: out


MODELS = {
    "mnist": mnist,
    "small": lambda: tensors([(8 * (1 + i % 8),) for i in range(160)]),
    "67MB": lambda: tensors([(1024, 1024)] * 16),
    "102MB": lambda: tensors(resnet50_shapes()),
}

# ------------------------------------------------------------------------------------------------ ways to train it


class Alone:
    """Reduces nothing."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def reduce(self):
        """Reduces gradients that are there."""


class DdpGloo(Alone):
    """DistributedDataParallel as it is, over gloo."""

    more = {}

    def __init__(self, model):
        super().__init__(model)
        self.model = DistributedDataParallel(model, **self.more)
        # What DistributedDataParallel reduces: a bucket of 1 MiB, then some of 25 MiB.
        left, self.buckets = sum(parameter.numel() for parameter in model.parameters()), []
        while left > 0:
            self.buckets.append(torch.zeros(min(left, (25 if self.buckets else 1) << 18)))
            left -= self.buckets[-1].numel()

    def reduce(self):
        for work in [dist.all_reduce(bucket.div_(dist.get_world_size()), async_op=True) for bucket in self.buckets]:
            work.wait()


class DdpGlooViews(DdpGloo):
    """The same with gradients as views of its buckets."""

    more = {"gradient_as_bucket_view": True}


class DdpMuster(DdpGloo):
    """DistributedDataParallel as it is, over the torch.distributed backend "muster"."""

    group = None

    def __init__(self, model):
        if DdpMuster.group is None:
            DdpMuster.group = dist.new_group(backend="muster")
        self.more = {**type(self).more, "process_group": DdpMuster.group}
        super().__init__(model)

    def reduce(self):
        for work in [dist.all_reduce(bucket.div_(dist.get_world_size()), group=DdpMuster.group, async_op=True) for bucket in self.buckets]:
            work.wait()


class DdpMusterViews(DdpMuster):
    """The same with gradients as views of its buckets."""

    more = {"gradient_as_bucket_view": True}


class Muster(Alone):
    """muster's DistributedOptimizer."""

    more = {}

    def __init__(self, model):
        super().__init__(model)
        self.optimizer = hvd.DistributedOptimizer(self.optimizer, model.named_parameters(), **self.more)

    def reduce(self):
        self.optimizer.synchronize()


class MusterBf16(Muster):
    """The same, 16 bits on the wire."""

    more = {"compression": hvd.Compression.bf16}


class DdpHook(Alone):
    """DistributedDataParallel over gloo with muster's communication hook."""

    def __init__(self, model):
        super().__init__(model)
        self.model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.model.register_comm_hook(hvd.DDPState(), hvd.ddp_hook)

    reduce = None


# A way more is a class more: made with a model, it has `model` (called with the data), `optimizer`, and `reduce()` or None.
WAYS = {"alone": Alone, "ddp gloo": DdpGloo, "ddp gloo views": DdpGlooViews, "ddp muster": DdpMuster, "ddp muster views": DdpMusterViews, "muster": Muster, "muster bf16": MusterBf16, "ddp gloo muster hook": DdpHook}

# ------------------------------------------------------------------------------------------------ measuring


def step(way, data, loss_of):
    way.optimizer.zero_grad()
    loss_of(way.model(data[0]), data[1]).backward()
    way.optimizer.step()


def timed(function, count):
    """Milliseconds a call, and of processor time of all threads of this rank; all ranks begin together."""
    dist.barrier()
    begin, busy = time.perf_counter(), time.process_time()
    for _ in range(count):
        function()
    return (time.perf_counter() - begin) / count * 1e3, (time.process_time() - busy) / count * 1e3


def summary(times):
    return {"median": statistics.median(times), "lowest": min(times), "highest": max(times), "all": times}


def measure(name, ways, rounds, seconds):
    made = {}
    for way in ways:
        torch.manual_seed(1)
        model, data, loss_of = MODELS[name]()
        made[way] = (WAYS[way](model), data, loss_of)
    first = next(iter(made))
    for one, data, loss_of in made.values():
        for _ in range(5):
            step(one, data, loss_of)
    # As many steps a round as fit into the time; the same number on all ranks.
    one, data, loss_of = made[first]
    took = hvd.allreduce(torch.tensor(timed(lambda: step(one, data, loss_of), 3)[0]), name="took", op=hvd.Max).item()
    count = max(4, int(seconds * 1e3 / took / 3))
    steps, busy, reductions, beyond = ({way: [] for way in made} for _ in range(4))
    order = list(made)
    for number in range(rounds):
        order = order[1:] + order[:1]
        for way in order:
            one, data, loss_of = made[way]
            took, worked = timed(lambda: step(one, data, loss_of), count)
            steps[way].append(took)
            busy[way].append(worked)
        for way in order:
            one = made[way][0]
            if one.reduce is not None and way != "alone":
                one.reduce()
                reductions[way].append(timed(one.reduce, count)[0])
        for way in made:
            if "alone" in made:
                beyond[way].append(steps[way][-1] - steps["alone"][-1])
    parameters = [parameter.numel() for parameter in made[first][0].model.parameters()]
    return {
        "model": name,
        "tensors": len(parameters),
        "bytes": 4 * sum(parameters),
        "steps_a_round": count,
        "ways": {
            way: {"step_ms": summary(steps[way]), "processor_ms": summary(busy[way])}
            | ({"beyond_alone_ms": summary(beyond[way])} if beyond[way] and way != "alone" else {})
            | ({"reduction_ms": summary(reductions[way])} if reductions[way] else {})
            for way in made
        },
    }


def show(result):
    print(f"\n{result['model']}: {result['tensors']} tensors, {result['bytes']:,} bytes of gradients, {result['steps_a_round']} steps a round")
    base = result["ways"].get("ddp gloo")
    for way, values in result["ways"].items():
        cells = []
        for what in ("step_ms", "processor_ms", "beyond_alone_ms", "reduction_ms"):
            if what not in values:
                continue
            value = values[what]
            times = f" ({base[what]['median'] / value['median']:.2f} times)" if base and base is not values and what in base and value["median"] > 0 else ""
            cells.append(f"{what[:-3].replace('_', ' ')} {value['median']:.3f} [{value['lowest']:.3f} {value['highest']:.3f}]{times}")
        print(f"  {way:24}{'; '.join(cells)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS), help="some of: " + ", ".join(MODELS))
    parser.add_argument("--ways", default=",".join(way for way in WAYS if "hook" not in way), help="some of: " + ", ".join(WAYS))
    parser.add_argument("--hook", action="store_true", help="DistributedDataParallel with muster's hook too")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="a way in a round, about")
    parser.add_argument("--threads", type=int, default=1, help="of torch, a rank")
    parser.add_argument("--json", help="where rank 0 writes all numbers")
    chosen = parser.parse_args()
    for given, known in ((chosen.models, MODELS), (chosen.ways, WAYS)):
        if unknown := [word for word in given.split(",") if word not in known]:
            parser.error(f"{unknown[0]!r} is not one of: {', '.join(known)}")
    warnings.filterwarnings("ignore", message=".*Sparse.*")
    torch.set_num_threads(chosen.threads)
    hvd.init()
    dist.init_process_group("gloo")
    ways = chosen.ways.split(",") + (["ddp gloo muster hook"] if chosen.hook else [])
    load_before = os.getloadavg()
    results = [measure(name, ways, chosen.rounds, chosen.seconds) for name in chosen.models.split(",")]
    if hvd.rank() == 0:
        context = {
            "ranks": hvd.size(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "backend": muster.backend()[0],
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "load_before": load_before,
            "load_after": os.getloadavg(),
        }
        print(f"{context['ranks']} ranks on {context['cores']} cores, {context['threads']} thread each, torch {context['torch']}, muster over {context['backend']};")
        print(f"load before {load_before[0]:.2f}, after {context['load_after'][0]:.2f}; milliseconds, medians of {chosen.rounds} rounds [lowest highest]")
        for result in results:
            show(result)
        if chosen.json:
            with open(chosen.json, "w", encoding="utf-8") as file:
                json.dump({"schema": "muster.step_speed/1", "context": context, "results": results}, file, indent=1)
    dist.barrier()
    dist.destroy_process_group()
    hvd.shutdown()


if __name__ == "__main__":
    main()
