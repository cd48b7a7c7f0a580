# DistributedOptimizer with unusual gradients, models and optimizers: compression, sparse, mixed types, layouts, closures, AMP, parameters that come and go.
# ranks: 1 2 3
# together: torch
import gc
import warnings

import check

try:
    import torch
except ImportError:
    check.skip("this Python has no torch")
import muster.torch as hvd
from muster import world

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
MEAN = (SIZE + 1) / 2  # of rank + 1


def step_once(optimizer, parameters, factor=None):
    """Every gradient is the rank's number plus one (times `factor`)."""
    optimizer.zero_grad()
    loss = sum(((parameter * (RANK + 1)).real if parameter.is_complex() else parameter * (RANK + 1)).sum() for parameter in parameters)
    (loss if factor is None else loss * factor).backward()
    optimizer.step()


def is_all(tensor, value, tolerance=0.0):
    return (tensor.detach() - value).abs().max().item() <= tolerance


def test_types_are_mixed():
    kinds = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128]
    parameters = [torch.zeros(3 + i, dtype=kinds[i % len(kinds)], requires_grad=True) for i in range(12)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0), op=hvd.Sum, bucket_bytes=16)
    for parameter in parameters:  # by hand, as not every version multiplies f16 on a CPU
        parameter.grad = torch.full_like(parameter, RANK + 1)
    optimizer.step()
    for parameter in parameters:
        assert is_all(parameter, -SIZE * MEAN), parameter


def test_compression_of_musters():
    for kind in (hvd.Compression.fp16, hvd.Compression.bf16):
        weight, double = torch.zeros(1000, requires_grad=True), torch.zeros(7, dtype=torch.float64, requires_grad=True)
        half = torch.zeros(5, dtype=kind.dtype, requires_grad=True)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight, double, half], lr=1.0), compression=kind, gradient_predivide_factor=2.0)
        for step in range(3):
            optimizer.zero_grad()
            weight.grad, double.grad = torch.full_like(weight, RANK + 1.001), torch.full_like(double, RANK + 1)
            half.grad = torch.full_like(half, RANK + 1)
            optimizer.step()
        assert is_all(weight, -3 * (MEAN + 0.001), 0.02) and is_all(double, -3 * MEAN, 0.02) and is_all(half, -3 * MEAN, 0.05), (kind, weight[:3])
        if SIZE == 2 and kind is hvd.Compression.bf16:
            assert not is_all(weight.grad, MEAN + 0.001, 1e-6)  # it did travel rounded


def test_what_rounding_loses_comes_in_a_later_step():
    """A part too small for bf16 beside 1: without feedback it would be lost every time."""
    if SIZE == 1:
        return
    weight = torch.zeros(64, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), compression=hvd.Compression.bf16)
    for _ in range(64):
        weight.grad = torch.full_like(weight, 1 + 2**-9)
        optimizer.step()
    assert abs(weight[0].item() + 64 + 64 / 512) < 0.02, weight[0]


class Thirds:
    """A compression of a user's: a third of each number, as f64."""

    calls = 0

    @staticmethod
    def compress(tensor):
        Thirds.calls += 1
        return tensor.double() / 3, tensor.dtype

    @staticmethod
    def decompress(tensor, context):
        return (tensor * 3).to(context)


def test_compression_of_a_users():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    torch.nn.init.zeros_(model[0].weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters(), Thirds, groups=2)
    for _ in range(3):
        step_once(optimizer, model.parameters())
    assert is_all(model[0].weight, -3 * MEAN, 1e-5)
    assert Thirds.calls == (0 if SIZE == 1 else 12)


def embedding_steps(compression=hvd.Compression.none, to_none=True, **more):
    """Every rank uses rows of its own and one in common; the last rank uses none in the second step."""
    torch.manual_seed(0)
    table = torch.nn.Embedding(2 * SIZE + 1, 3, sparse=True)
    linear = torch.nn.Linear(3, 1)
    before = table.weight.detach().clone()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*table.parameters(), *linear.parameters()], lr=1.0), compression=compression, **more)
    expected = torch.zeros_like(before)
    for step in range(3):
        optimizer.zero_grad(set_to_none=to_none)
        if step != 1 or RANK != SIZE - 1:
            (table(torch.tensor([RANK, 2 * SIZE, 2 * SIZE])).sum() * 2 + linear(torch.ones(3)).sum()).backward()
        optimizer.step()
        for rank in range(SIZE):
            if step != 1 or rank != SIZE - 1:
                expected[rank] += 2 / SIZE
                expected[2 * SIZE] += 4 / SIZE
    assert (before - expected - table.weight).abs().max() < 1e-3, (before - expected - table.weight)
    return table.weight.grad


def test_sparse_gradients():
    for to_none in (True, False):
        assert embedding_steps(to_none=to_none).is_sparse
    embedding_steps(compression=hvd.Compression.fp16)
    embedding_steps(compression=Thirds)
    dense = embedding_steps(sparse_as_dense=True)
    assert SIZE == 1 or not dense.is_sparse


def test_sparse_adam_gets_sparse_gradients_back():
    torch.manual_seed(1)
    embedding = torch.nn.Embedding(6, 2, sparse=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(embedding.parameters()), lr=0.1), sparse_as_dense=True)
    before = embedding.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        embedding(torch.tensor([RANK, 4])).sum().backward()
        optimizer.step()
    moved = [not torch.equal(row, old) for row, old in zip(embedding.weight.detach(), before)]
    assert moved == [row < SIZE or row == 4 for row in range(6)], moved
    assert all(torch.equal(embedding.weight, one) for one in hvd.allgather_object(embedding.weight.detach()))


def test_sparse_gradient_first_seen_late():
    """Once laid out as dense it stays dense."""
    table, other = torch.nn.Embedding(4, 2, sparse=True), torch.zeros(2, requires_grad=True)
    torch.nn.init.zeros_(table.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([table.weight, other], lr=1.0))
    for step in range(3):
        optimizer.zero_grad()
        (other.sum() + (table(torch.tensor([1])).sum() * (RANK + 1) if step else 0)).backward()
        optimizer.step()
    assert is_all(table.weight[1], -2 * MEAN, 1e-6) and is_all(table.weight[0], 0) and is_all(other, -3)


def test_layouts():
    """channels_last and transposed parameters keep their layout; elements meet by their place in the tensor."""
    torch.manual_seed(RANK)
    conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    turned = torch.nn.Parameter(torch.zeros(3, 5).t())
    holes = torch.nn.Parameter(torch.zeros(4, 6)[:, ::2])
    for parameter in conv.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*conv.parameters(), turned, holes], lr=1.0))
    ramp = torch.arange(4 * 3 * 3 * 3).reshape(4, 3, 3, 3).float()
    for _ in range(2):
        optimizer.zero_grad()
        ((conv.weight * ramp * (RANK + 1)).sum() + (turned * torch.arange(15.0).reshape(5, 3)).sum() + (holes * torch.arange(12.0).reshape(4, 3)).sum()).backward()
        optimizer.step()
        assert conv.weight.grad.stride() == conv.weight.stride() and (SIZE == 1 or turned.grad.stride() == turned.stride())
    assert (conv.weight + 2 * ramp * MEAN).abs().max() < 1e-4
    assert (turned + 2 * torch.arange(15.0).reshape(5, 3)).abs().max() == 0 and (holes + 2 * torch.arange(12.0).reshape(4, 3)).abs().max() == 0


def test_odd_parameters():
    """Scalars, empty ones, many dimensions, one used twice, one that nobody uses."""
    scalar, empty, many = torch.zeros((), requires_grad=True), torch.zeros(0, 3, requires_grad=True), torch.zeros([2] * 10, requires_grad=True)
    shared, unused = torch.zeros(2, 2, requires_grad=True), torch.zeros(3, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([scalar, empty, many, shared, unused], lr=1.0))
    for _ in range(2):
        step_once(optimizer, [scalar, empty, many, shared, shared])
    assert is_all(scalar, -2 * MEAN) and is_all(many, -2 * MEAN) and is_all(shared, -4 * MEAN) and is_all(unused, 0)


def test_parameters_are_frozen_and_freed():
    first, second = torch.zeros(3, requires_grad=True), torch.zeros(3)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first, second], lr=1.0, weight_decay=0.0))
    step_once(optimizer, [first])
    second.requires_grad_()
    for _ in range(2):
        step_once(optimizer, [first, second])
    assert is_all(first, -3 * MEAN) and is_all(second, -2 * MEAN)
    assert SIZE == 1 or all(slot.bucket is not None for slot in optimizer._muster.reducer.slots)
    optimizer.zero_grad(set_to_none=True)
    first.requires_grad_(False)
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        (second * (RANK + 1)).sum().backward()
        optimizer.step()
        assert first.grad is None
    assert is_all(first, -3 * MEAN) and is_all(second, -4 * MEAN)


def test_parameters_are_added():
    first, second, third = (torch.zeros(3, requires_grad=True) for _ in range(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first], lr=1.0), op=hvd.Sum)
    step_once(optimizer, [first])
    optimizer.add_param_group({"params": [second], "lr": 2.0})
    step_once(optimizer, [first, second])
    optimizer.zero_grad()
    ((first.sum() + third.sum()) * (RANK + 1)).backward()
    optimizer.add_param_group({"params": [third]})  # after its gradient came
    optimizer.step()
    step_once(optimizer, [first, second, third])
    total = SIZE * MEAN
    assert is_all(first, -4 * total) and is_all(second, -4 * total) and is_all(third, -2 * total), (first, second, third)


def test_gradients_that_the_program_makes():
    weight, other = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight, other], lr=1.0))
    for step in range(3):
        weight.grad = torch.full((3,), float(RANK + 1))
        other.grad = None
        optimizer.step()
        kept = weight.grad
        kept.mul_(2)
        assert weight.grad is kept and is_all(weight.grad, 2 * MEAN)
    assert is_all(weight, -3 * MEAN)
    optimizer.zero_grad(set_to_none=False)
    assert is_all(weight.grad, 0) and is_all(kept, 0)
    weight.grad = torch.ones(3)
    optimizer.zero_grad(set_to_none=False)
    assert is_all(weight.grad, 0)
    optimizer.zero_grad(set_to_none=True)
    assert weight.grad is None
    ((weight + other).sum() * (RANK + 1)).backward()
    weight.grad = weight.grad.clone()  # is under way by now: what comes of it counts
    optimizer.synchronize()
    assert is_all(weight.grad, MEAN)


def test_graph_of_gradients():
    weight = torch.ones(3, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(2):
        optimizer.zero_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (weight**2 * (RANK + 1)).sum().backward(create_graph=True)
        optimizer.step()
        weight.grad = weight.grad.detach()
        weight.data.fill_(1)
        optimizer.zero_grad(set_to_none=False)
        assert is_all(weight.grad, 0)


def test_closures():
    """The closure's gradients are reduced each time; LBFGS goes by the reduced loss, so that all ranks search alike."""
    def both(make, steps=3):
        torch.manual_seed(1)
        data, target = torch.randn(6 * SIZE, 4), torch.randn(6 * SIZE, 1)
        models = [torch.nn.Linear(4, 1) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        optimizer, plain = hvd.DistributedOptimizer(make(models[0].parameters()), models[0].named_parameters()), make(models[1].parameters())
        losses = []
        for model, by, rows in ((models[0], optimizer, slice(6 * RANK, 6 * RANK + 6)), (models[1], plain, slice(None))):

            def closure():
                by.zero_grad()
                loss = ((model(data[rows]) - target[rows]) ** 2).mean()
                loss.backward()
                return loss

            for _ in range(steps):
                losses.append(by.step(closure).item())
        assert max((a - b).abs().max().item() for a, b in zip(models[0].parameters(), models[1].parameters())) < 2e-3
        return losses

    both(lambda p: torch.optim.SGD(p, lr=0.1))
    losses = both(lambda p: torch.optim.LBFGS(p, lr=0.5, max_iter=4, line_search_fn="strong_wolfe"))
    assert abs(losses[0] - losses[3]) < 1e-5, losses


def test_grad_scaler():
    """Gradients are reduced before they are unscaled, so that all ranks see the same infinities; a skipped step leaves nothing behind."""
    try:
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    except (AttributeError, TypeError):
        return  # torch before 2.3 has none for CPUs
    for explicit in (False, True):
        weight = torch.zeros(3, requires_grad=True)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step in range(4):
                optimizer.zero_grad()
                bad = float("inf") if step == 1 and RANK == 0 else 1.0
                scaler.scale((weight * (RANK + 1) * bad).sum()).backward()
                if explicit:
                    scaler.unscale_(optimizer)
                    assert step == 1 or is_all(weight.grad, MEAN, 1e-6)
                scaler.step(optimizer)
                scaler.update()
        assert is_all(weight, -3 * MEAN, 1e-6), weight


def test_several_optimizers():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    first = hvd.DistributedOptimizer(torch.optim.SGD(model[0].parameters(), lr=1.0), model.named_parameters())
    second = hvd.DistributedOptimizer(torch.optim.SGD(model[1].parameters(), lr=2.0), model.named_parameters())
    for _ in range(3):
        first.zero_grad(), second.zero_grad()
        (sum(parameter.sum() for parameter in model.parameters()) * (RANK + 1)).backward()
        second.step(), first.step()
    assert is_all(model[0].weight, -3 * MEAN) and is_all(model[1].bias, -6 * MEAN)


def test_wrapped_again():
    """The newest has the hooks; the older one, forgotten or not, leaves no request behind and still works."""
    weight = torch.zeros(3, requires_grad=True)
    older = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    step_once(older, [weight])
    newer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    step_once(newer, [weight])
    weight.grad = None
    (weight * (RANK + 1)).sum().backward()
    if SIZE > 1:
        assert not older._handles and newer._handles
    newer.synchronize()
    weight.grad = None
    older.step()
    assert is_all(weight, -2 * MEAN)
    del older, newer
    gc.collect()
    weight.grad = None
    weight.sum().backward()  # hooks of what is gone do nothing
    assert is_all(weight.grad, 1)


def test_models_are_not_kept():
    import weakref

    model = torch.nn.Linear(3, 3)
    seen = weakref.ref(model.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    step_once(optimizer, list(model.parameters()))
    del model, optimizer
    gc.collect()
    assert seen() is None


def test_compiled_models():
    if not hasattr(torch, "compile"):
        return
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    alone = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    alone.load_state_dict(model.state_dict())
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), bucket_bytes=32)
    plain = torch.optim.SGD(alone.parameters(), lr=0.1)
    for step in range(3):
        data = torch.randn(2 * SIZE, 3, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad(), plain.zero_grad()
        compiled(data[2 * RANK : 2 * RANK + 2]).pow(2).mean().backward()
        alone(data).pow(2).mean().backward()
        optimizer.step(), plain.step()
    assert max((a - b).abs().max().item() for a, b in zip(model.parameters(), alone.parameters())) < 1e-6


def test_autocast():
    model = torch.nn.Linear(8, 4)
    torch.nn.init.zeros_(model.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (model(torch.ones(1, 8)) * (RANK + 1)).sum()
        loss.backward()
        assert model.weight.grad.dtype == torch.float32
        optimizer.step()
    assert is_all(model.weight, -2 * MEAN, 1e-2)


def test_bucket_bytes_of_the_environment():
    import os

    from muster.torch.buckets import sizes_from_environment

    for text, sizes in (("4096", (4096, 4096)), ("10,200", (10, 200))):
        os.environ["MUSTER_BUCKET_BYTES"] = text
        assert sizes_from_environment() == sizes
    for text in ("many", "1,2,3", "0"):
        os.environ["MUSTER_BUCKET_BYTES"] = text
        check.raises(ValueError, sizes_from_environment, "MUSTER_BUCKET_BYTES", text)
    del os.environ["MUSTER_BUCKET_BYTES"]


def test_plan():
    from muster.torch.buckets import describe, order_in_memory, plan_buckets

    gradients = [describe(str(i), torch.zeros(10)) for i in range(7)] + [describe("7", torch.zeros(0)), describe("8", torch.zeros(1, dtype=torch.float64))]
    sizes = [4] * 8 + [8]
    assert plan_buckets(gradients, sizes, 40, 80) == [[6], [5, 4], [3, 2], [1, 0], [8]]
    assert plan_buckets(gradients, sizes, 1000, 1000) == [[8], [6, 5, 4, 3, 2, 1, 0]] or plan_buckets(gradients, sizes, 1000, 1000) == [[6, 5, 4, 3, 2, 1, 0], [8]]
    grouped = [gradient._replace(group=i % 2) for i, gradient in enumerate(gradients[:4])] + gradients[4:]
    assert plan_buckets(grouped, sizes, 1, 1) == [[8], [6], [5], [4], [3, 1], [2, 0]]
    assert order_in_memory((2, 3), (3, 1)) == () and order_in_memory((2, 3), (1, 2)) == (1, 0) and order_in_memory((2, 3), (6, 2)) is None
    assert order_in_memory((4, 3, 2, 2), (12, 1, 6, 3)) == (0, 2, 3, 1) and order_in_memory((1, 5), (99, 1)) == () and order_in_memory((), ()) == ()


check.run(globals())
