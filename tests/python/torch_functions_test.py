# broadcast_parameters, broadcast_optimizer_state, objects, what the installation tells, timelines.
# ranks: 1 2 3
# together: torch
import json
import os
import tempfile
from collections import OrderedDict

import check

try:
    import torch
except ImportError:
    check.skip("torch is not installed")

import muster.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()


def model(seed=None):
    torch.manual_seed(rank if seed is None else seed)
    return torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten(), torch.nn.Linear(12, 2))


def same_everywhere(value):
    return all(torch.equal(value, one) for one in hvd.allgather_object(value))


def test_broadcast_parameters_takes_any_iterable():
    ways = (
        lambda one: one.state_dict(),
        lambda one: OrderedDict(reversed(list(one.state_dict().items()))) if rank else one.state_dict(),
        lambda one: one.named_parameters(),
        lambda one: list(one.named_parameters()),
        lambda one: one.parameters(),
        lambda one: [*one.parameters(), None],
        lambda one: (parameter.data for parameter in one.parameters()),
    )
    for root in range(size):
        for way in ways:
            mine = model()
            mine[0].to(memory_format=torch.channels_last)
            hvd.broadcast_parameters(way(mine), root)
            for got, wanted in zip(mine.parameters(), model(root).parameters()):
                assert torch.equal(got, wanted)
            assert mine[0].weight.is_contiguous(memory_format=torch.channels_last)
    check.raises(ValueError, lambda: hvd.broadcast_parameters({"a": torch.ones(1), "b": 3}, 0), "b is a int")
    check.raises(ValueError, lambda: hvd.broadcast_parameters(torch.ones(2), 0), "broadcast_")


def test_objects():
    for root in range(size):
        for thing in ({"rank": rank, "tensor": torch.full((2,), rank)}, rank, "x" * 100000 * rank, None if rank == root else rank):
            got = hvd.broadcast_object(thing, root)
            assert (got is thing) == (rank == root) or isinstance(got, (int, str, type(None)))
        assert hvd.broadcast_object(rank, root_rank=root, name="named") == root
    assert hvd.allgather_object("x" * rank) == ["x" * one for one in range(size)]
    assert hvd.allgather_object({rank}, name="named") == [{one} for one in range(size)]


OPTIMIZERS = (
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    (torch.optim.Adam, {"lr": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.1}),
    (torch.optim.Adagrad, {"lr": 0.1}),
    (torch.optim.Adadelta, {"lr": 0.1}),
    (torch.optim.RMSprop, {"lr": 0.1, "centered": True, "momentum": 0.5}),
    (torch.optim.ASGD, {"lr": 0.1}),
    (torch.optim.Rprop, {"lr": 0.1}),
    (torch.optim.LBFGS, {"lr": 0.1}),
)


def trained(kind, options, seed, steps=2):
    mine = model(seed)
    optimizer = kind(mine.parameters(), **options)
    torch.manual_seed(seed)

    def closure():
        optimizer.zero_grad()
        loss = mine(torch.randn(4, 2, 4, 4)).square().sum()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return mine, optimizer


def flat(value):
    """What is in a state, in an order, tensors as lists."""
    if isinstance(value, dict):
        return [(str(key), flat(one)) for key, one in sorted(value.items(), key=lambda pair: str(pair[0]))]
    if isinstance(value, (list, tuple)):
        return [flat(one) for one in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, torch.Tensor) else value


def test_optimizer_state():
    for kind, options in OPTIMIZERS:
        for steps in (0, 2):  # of the others: without and with a state of their own
            root = size - 1
            _, wanted = trained(kind, options, 7)
            if rank == root:
                mine, optimizer = trained(kind, options, 7)
            else:
                mine, optimizer = trained(kind, {**options, "lr": 0.5}, 8, steps)
            before = [parameter.clone() for parameter in mine.parameters()]
            group = optimizer.param_groups[0]
            hvd.broadcast_optimizer_state(optimizer, root)
            assert optimizer.param_groups[0] is group and group["lr"] == 0.1
            assert flat(optimizer.state_dict()) == flat(wanted.state_dict()), kind
            assert all(torch.equal(one, other) for one, other in zip(before, mine.parameters())), "the parameters were touched"
            optimizer.step(lambda: mine(torch.ones(1, 2, 4, 4)).sum())


def test_optimizer_state_the_root_has_none():
    _, optimizer = trained(torch.optim.Adam, {"lr": 0.1 * (rank + 1)}, 7, steps=0 if rank == 0 else 2)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert not optimizer.state_dict()["state"] and optimizer.param_groups[0]["lr"] == 0.1


def test_optimizer_state_in_groups_with_options_as_tensors():
    mine = model()
    groups = [{"params": mine[0].parameters(), "lr": torch.tensor(0.1 * (rank + 1)), "betas": (0.1 * rank, 0.5)}, {"params": mine[3].parameters()}]
    optimizer = torch.optim.Adam(groups, lr=0.2 * (rank + 1))
    hvd.broadcast_optimizer_state(optimizer, size - 1, mine)
    first, second = optimizer.param_groups
    assert torch.equal(first["lr"], torch.tensor(0.1 * size)) and first["betas"] == (0.1 * (size - 1), 0.5) and second["lr"] == 0.2 * size


def test_optimizer_state_of_other_models():
    if size == 1:
        return
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True) for _ in range(2 if rank else 3)], lr=0.1)
    if rank == 0:
        hvd.broadcast_optimizer_state(optimizer, 0)
    else:
        check.raises(ValueError, lambda: hvd.broadcast_optimizer_state(optimizer, 0), f"rank {rank}", "[2]", "[3]")


def test_optimizer_state_of_a_distributed_optimizer():
    mine, optimizer = trained(torch.optim.Adam, {"lr": 0.1}, rank, steps=2 if rank == 0 else 0)
    wrapped = hvd.DistributedOptimizer(optimizer, mine.named_parameters())
    hvd.broadcast_parameters(mine.state_dict(), 0)
    hvd.broadcast_optimizer_state(wrapped, 0)
    for _ in range(2):
        wrapped.zero_grad()
        mine(torch.randn(4, 2, 4, 4)).sum().backward()
        wrapped.step()
    assert all(same_everywhere(parameter.detach()) for parameter in mine.parameters())
    assert all(same_everywhere(state["exp_avg"]) for state in wrapped.state.values())


def test_what_is_built():
    for told in (hvd.mpi_built, hvd.mpi_enabled, hvd.mpi_threads_supported, hvd.gloo_built, hvd.gloo_enabled, hvd.cuda_built, hvd.rocm_built):
        assert type(told()) is bool
    assert not hvd.ccl_built() and type(hvd.nccl_built()) is int
    from muster import backend, built

    assert "libmuster_comm" in built.library() and hvd.mpi_enabled() == (backend()[0] in ("mpi", "hierarchical"))
    assert hvd.mpi_ops.is_homogeneous() and hvd.is_initialized()


def test_timeline():
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(2):
            path = os.path.join(folder, f"timeline{turn}.json")
            hvd.start_timeline(path, mark_cycles=bool(turn))
            hvd.start_timeline(path, mark_cycles=bool(turn))  # begins anew
            hvd.allreduce(torch.ones(3), name=f"in the timeline {turn}")
            hvd.stop_timeline()
            hvd.stop_timeline()
            hvd.allreduce(torch.ones(3), name="after the timeline")
            assert os.path.exists(path) == (rank == 0)
            if rank == 0:
                with open(path) as file:
                    text = file.read()
                assert f"allreduce.in the timeline {turn}" in text and "after the timeline" not in text
                assert json.loads(text)
        if rank == 0:
            check.raises(hvd.HorovodInternalError, lambda: hvd.start_timeline(os.path.join(folder, "missing", "timeline.json")), "missing")


check.run(globals())
