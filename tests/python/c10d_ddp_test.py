# DistributedDataParallel and ZeroRedundancyOptimizer over muster, against the same over gloo.
# ranks: 2 3
# together: c10d
import os

import check

try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    check.skip(f"no PyTorch: {error}")
if not hasattr(dist.Backend, "MUSTER"):
    import muster.torch  # registers it, as muster.distributed does

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)


class Net(nn.Module):
    """Several layers of several shapes; with `branches` a step uses one of two, by the rank."""

    def __init__(self, branches=False):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
        self.middle = nn.ModuleList([nn.Linear(8 * 36, 32) for _ in range(2 if branches else 1)])
        self.last = nn.Linear(32, 10)

    def forward(self, images):
        middle = self.middle[rank % len(self.middle)]
        return self.last(torch.relu(middle(self.first(images))))


def batches(count, epoch=0):
    """This rank's part of an epoch, the same in each run."""
    generator = torch.Generator().manual_seed(100 * epoch + rank)
    for _ in range(count):
        yield torch.randn(16, 1, 8, 8, generator=generator), torch.randint(0, 10, (16,), generator=generator)


def train(group, branches=False, steps=6, accumulate=1, optimizer=None, **options):
    torch.manual_seed(rank)  # DDP makes all ranks begin with rank 0's parameters
    net = Net(branches)
    model = DistributedDataParallel(net, process_group=group, **options)
    make = optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9))
    step = make(model.parameters())
    for number, (images, labels) in enumerate(batches(steps)):
        last = (number + 1) % accumulate == 0
        if last:
            nn.functional.cross_entropy(model(images), labels).backward()
            step.step()
            step.zero_grad()
        else:
            with model.no_sync():
                nn.functional.cross_entropy(model(images), labels).backward()
    return [parameter.detach().clone() for parameter in net.parameters()]


def compare(ours, theirs):
    for a, b in zip(ours, theirs):
        if size == 2:  # one way to add two numbers
            assert torch.equal(a, b), (a - b).abs().max()
        else:
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-5), (a - b).abs().max()


def check_against_gloo(**options):
    ours, theirs = train(dist.group.WORLD, **options), train(gloo, **options)
    compare(ours, theirs)
    every = [None] * size
    dist.all_gather_object(every, ours)
    for other in every:
        for a, b in zip(ours, other):
            assert torch.equal(a, b)


def test_init():
    global gloo
    dist.init_process_group("muster")
    gloo = dist.new_group(backend="gloo")


def test_ddp():
    check_against_gloo()


def test_horovods_optimizer_agrees_with_ddp():
    import muster.torch as hvd

    hvd.init()
    torch.manual_seed(rank)
    net = Net()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), named_parameters=net.named_parameters())
    for images, labels in batches(6):
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    for mine, theirs in zip(net.parameters(), train(gloo)):  # DDP divides before it adds, Horovod after
        assert torch.allclose(mine.detach(), theirs, rtol=1e-4, atol=1e-5), (mine - theirs).abs().max()


def test_small_buckets():
    check_against_gloo(bucket_cap_mb=0.01)


def test_gradients_as_views_of_the_buckets():
    check_against_gloo(gradient_as_bucket_view=True)


def test_parameters_that_are_not_used():
    check_against_gloo(branches=True, find_unused_parameters=True)


def test_static_graph():
    check_against_gloo(static_graph=True)


def test_steps_without_sync():
    check_against_gloo(accumulate=3)


def test_ranks_with_more_batches_than_others():
    def run(group):
        torch.manual_seed(0)
        net = Net()
        model = DistributedDataParallel(net, process_group=group)
        step = torch.optim.SGD(model.parameters(), lr=0.05)
        with model.join():
            for images, labels in batches(2 + 2 * rank):
                step.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                step.step()
        return [parameter.detach().clone() for parameter in net.parameters()]

    compare(run(dist.group.WORLD), run(gloo))


def test_zero_redundancy_optimizer():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def run(group):
        return train(group, optimizer=lambda parameters: ZeroRedundancyOptimizer(parameters, torch.optim.SGD, process_group=group, lr=0.05, momentum=0.9))

    compare(run(dist.group.WORLD), run(gloo))


def test_communication_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    def run(group):
        torch.manual_seed(0)
        net = Net()
        model = DistributedDataParallel(net, process_group=group)
        model.register_comm_hook(group, default_hooks.fp16_compress_hook)
        for images, labels in batches(2):
            nn.functional.cross_entropy(model(images), labels).backward()
        return [parameter.grad for parameter in net.parameters()]

    for a, b in zip(run(dist.group.WORLD), run(gloo)):
        assert torch.allclose(a, b, rtol=1e-2, atol=1e-3)


def test_end():
    dist.destroy_process_group()


check.run(globals())
