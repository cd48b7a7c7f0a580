# Gradients of the collectives.
# ranks: 1 2 3
# together: torch
import check

try:
    import torch
except ImportError:
    check.skip("torch is not installed")

import muster.torch as hvd

hvd.init(process_sets="dynamic")
rank, size = hvd.rank(), hvd.size()


def weight(one):
    """What a rank's result is multiplied by, so that ranks have different gradients."""
    return one + 1.0


WEIGHTS = [weight(one) for one in range(size)]
MEAN = sum(WEIGHTS) / size


def leaf(*shape):
    return torch.full(shape, float(rank), dtype=torch.float64, requires_grad=True)


def close(tensor, wanted):
    wanted = torch.as_tensor(wanted, dtype=tensor.dtype)
    assert tensor.shape == wanted.shape and torch.allclose(tensor, wanted), (tensor, wanted)


def test_allreduce():
    for op, wanted in ((hvd.Sum, MEAN * size), (hvd.Average, MEAN)):
        x = leaf(3, 2)
        (hvd.allreduce(x, op=op) * weight(rank)).sum().backward()
        close(x.grad, torch.full((3, 2), wanted))
        x = leaf(3)
        (hvd.allreduce(x, op=op, prescale_factor=0.5, postscale_factor=4.0) * weight(rank)).sum().backward()
        close(x.grad, [2 * wanted] * 3)
        x = leaf(3)
        (hvd.allreduce(x, op=op, compression=hvd.Compression.fp16) * weight(rank)).sum().backward()
        close(x.grad, [float(torch.tensor(wanted).half())] * 3)


def test_the_gradient_comes_through_the_wire():
    x = torch.ones(4, requires_grad=True)
    (hvd.allreduce(x, op=hvd.Sum, compression=hvd.Compression.bf16) * weight(rank)).sum().backward()
    close(x.grad, [MEAN * size] * 4)


def test_grouped_allreduce():
    x, y, z = leaf(2), leaf(), torch.ones(3)
    a, b, c = hvd.grouped_allreduce([x, y, z], op=hvd.Sum)
    ((a.sum() + 2 * b) * weight(rank)).backward()
    close(x.grad, [MEAN * size] * 2)
    close(y.grad, 2 * MEAN * size)


def test_allgather():
    x = leaf(rank + 1, 2)
    gathered = hvd.allgather(x)
    rows = torch.arange(1.0, gathered.shape[0] + 1, dtype=torch.float64).unsqueeze(1)
    (gathered * rows * weight(rank)).sum().backward()
    first = rank * (rank + 1) // 2
    close(x.grad, rows[first : first + rank + 1].expand(-1, 2) * MEAN)
    x = leaf()
    (hvd.allgather(x) * weight(rank)).sum().backward()
    close(x.grad, MEAN)


def test_grouped_allgather():
    x, y = leaf(rank + 1), leaf(2, 2)
    a, b = hvd.grouped_allgather([x, y])
    ((a.sum() + 3 * b.sum()) * weight(rank)).backward()
    close(x.grad, [MEAN] * (rank + 1))
    close(y.grad, torch.full((2, 2), 3 * MEAN))


def test_broadcast():
    for root in range(size):
        x = leaf(3)
        (hvd.broadcast(x, root) * weight(rank)).sum().backward()
        close(x.grad, [MEAN if rank == root else 0.0] * 3)


def test_alltoall():
    splits = torch.arange(1, size + 1, dtype=torch.int32)
    x = leaf(int(splits.sum()), 2)
    received, rows = hvd.alltoall(x, splits)
    assert received.requires_grad and not rows.requires_grad
    (received * weight(rank)).sum().backward()
    close(x.grad, torch.tensor(WEIGHTS, dtype=torch.float64).repeat_interleave(splits.long()).unsqueeze(1).expand(-1, 2))
    x = leaf(size)
    (hvd.alltoall(x) * weight(rank)).sum().backward()
    close(x.grad, WEIGHTS)


def test_reducescatter():
    of_rows = torch.tensor(WEIGHTS, dtype=torch.float64).repeat_interleave(torch.tensor([2 if one == 0 else 1 for one in range(size)]))
    for op, factor in ((hvd.Sum, size), (hvd.Average, 1)):
        x = leaf(size + 1)
        (hvd.reducescatter(x, op=op) * weight(rank)).sum().backward()
        close(x.grad, of_rows * factor)
        x, y = leaf(size + 1), leaf(size)
        a, b = hvd.grouped_reducescatter([x, y], op=op, prescale_factor=0.5, postscale_factor=3.0)
        ((a.sum() + 2 * b.sum()) * weight(rank)).backward()
        close(x.grad, of_rows * factor * 1.5)
        close(y.grad, torch.tensor(WEIGHTS) * factor * 3.0)


def test_process_sets():
    if size < 2:
        return
    pair = hvd.add_process_set([0]), hvd.add_process_set(list(range(1, size)))
    mine = pair[1] if rank else pair[0]
    x = leaf(2)
    (hvd.allreduce(x, op=hvd.Sum, process_set=mine) * weight(rank)).sum().backward()
    close(x.grad, [sum(weight(one) for one in mine.ranks)] * 2)
    x = leaf(2)
    (hvd.broadcast(x, mine.ranks[0], process_set=mine) * weight(rank)).sum().backward()
    close(x.grad, [sum(weight(one) for one in mine.ranks) / mine.size() if rank == mine.ranks[0] else 0.0] * 2)
    x = leaf(1)
    (hvd.allgather(x, process_set=mine) * weight(rank)).sum().backward()
    close(x.grad, [sum(weight(one) for one in mine.ranks) / mine.size()])
    for one in pair:
        hvd.remove_process_set(one)


def test_nothing_is_recorded_where_nothing_is_asked_for():
    assert not hvd.allreduce(torch.ones(2)).requires_grad
    with torch.no_grad():
        assert not hvd.allreduce(leaf(2)).requires_grad and not hvd.allgather(leaf(2)).requires_grad


check.run(globals())
