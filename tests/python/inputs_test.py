# All inputs through all faces: type x byte order x conjugate and negative bits x layout x no elements, compared with NumPy.
# ranks: 1 2 3
# together: torch
import itertools

import check

try:
    import numpy as np
    import torch
except ImportError:
    check.skip("torch or NumPy is not installed")

import torch.distributed as dist
import muster.torch as hvd
from muster import arrays

hvd.init()
rank, size = hvd.rank(), hvd.size()
dist.init_process_group("muster")

LAYOUTS = {
    "plain": lambda a: a,
    "transposed": lambda a: a.T.copy().T if isinstance(a, np.ndarray) else a.t().contiguous().t(),
    "every second": lambda a: np.repeat(a, 2, 1)[:, ::2] if isinstance(a, np.ndarray) else a.repeat_interleave(2, 1)[:, ::2],
    "no rows": lambda a: a[:0],
    "scalar": lambda a: a[1, 1],
}


def given(of, dtype, layout):
    """Rank `of`'s array: sums of them do not fit into 8 bits, their averages do."""
    large = 100 if np.dtype(dtype).itemsize == 1 else 2
    values = (np.arange(6).reshape(2, 3) + large + of).astype(dtype)
    return np.asarray(LAYOUTS[layout](values * (1 + 2j) if np.dtype(dtype).kind == "c" else values))


def mean(all_given):
    total = sum(one.astype(np.int64) if one.dtype.kind in "iu" else one for one in all_given)
    return np.asarray(np.trunc(total / size) if all_given[0].dtype.kind in "iu" else total / size).astype(all_given[0].dtype)


def same(got, wanted):
    assert got.shape == wanted.shape and got.dtype == wanted.dtype and np.array_equal(got, wanted), (got, wanted)


def rows(a):
    return np.atleast_1d(a)


def test_arrays():
    reduced, moved = ("f2", "f4", "f8", "i1", "u1", "i4", "i8"), ("i2", "u4", "c8", "U3", "M8[s]", "?")
    for name, order, layout in itertools.product(reduced + moved, "<>", LAYOUTS):
        dtype = np.dtype(order + name if name != "?" else name)
        every = [given(of, "i8" if name == "M8[s]" else dtype, layout).astype(dtype) for of in range(size)]
        mine = every[rank]
        if name in reduced:
            with np.errstate(over="ignore"):
                same(arrays.allreduce(mine, op=arrays.Sum), np.asarray(sum(every[1:], every[0])).astype(dtype))
            same(arrays.allreduce(mine), mean(every))
            if mine.ndim:
                same(arrays.reducescatter(mine), np.array_split(mean(every), size)[rank])
        same(arrays.broadcast(mine, size - 1), every[-1])
        same(arrays.allgather(mine), np.concatenate([rows(one) for one in every]).astype(dtype))
        if mine.ndim:
            row = np.concatenate([mine] * size).astype(dtype)
            same(arrays.alltoall(row)[0], np.concatenate(every).astype(dtype))


def test_arrays_of_other_byte_orders_on_the_ranks():
    mine = np.array([1.0, 2.0], "<f4" if rank % 2 else ">f4")
    same(arrays.allreduce(mine, op=arrays.Sum), (np.array([1.0, 2.0]) * size).astype(mine.dtype))
    same(arrays.allgather(mine), np.array([1.0, 2.0] * size, mine.dtype))


def test_an_average_of_integers_is_exact_and_truncates():
    wanted = (1 << 55) + 1
    for value in (wanted, -wanted):
        same(arrays.allreduce(np.array([value])), np.array([value]))
        assert hvd.allreduce(torch.tensor([value])).item() == value
    uneven = np.array([-7 if rank == 0 else 0], "i4")
    same(arrays.allreduce(uneven), np.array([-(7 // size)], "i4"))


def bits(tensor):
    """The tensor, and what torch leaves to be conjugated or negated later."""
    yield tensor
    if tensor.is_complex():
        yield tensor.conj()
    elif tensor.is_floating_point():
        yield torch._neg_view(tensor)


def every_tensor(dtype, layout, which):
    for of in range(size):
        tensor = LAYOUTS[layout](torch.from_numpy(given(of, dtype, "plain")))
        yield list(bits(tensor))[which]


def as_numpy(tensor):
    return tensor.resolve_conj().resolve_neg().numpy().copy()


def cases(dtypes):
    for dtype, layout in itertools.product(dtypes, LAYOUTS):
        for which in range(1 if np.dtype(dtype).kind in "iub" else 2):
            tensors = list(every_tensor(dtype, layout, which))
            yield tensors, [as_numpy(one) for one in tensors]


def test_tensors_that_are_reduced():
    for tensors, every in cases(("f2", "f4", "f8", "i1", "u1", "i4", "i8")):
        mine = tensors[rank]
        wanted = sum(every[1:], every[0])
        total = np.asarray(wanted).astype(every[0].dtype)
        same(as_numpy(hvd.allreduce(mine, op=hvd.Sum)), total)
        same(as_numpy(hvd.allreduce(mine)), mean(every))
        if mine.dim():
            same(as_numpy(hvd.reducescatter(mine)), np.array_split(mean(every), size)[rank])
        dist.all_reduce(tensors[rank])
        same(as_numpy(tensors[rank]), total)
    for tensors, every in cases(("f4", "u1", "i4")):
        hvd.allreduce_(tensors[rank])
        same(as_numpy(tensors[rank]), mean(every))
    group = dist.distributed_c10d._get_default_group()
    for tensors, every in cases(("c8",)):
        group.allreduce([tensors[rank]]).wait()  # torch 1's all_reduce refuses conjugated tensors itself
        same(as_numpy(tensors[rank]), np.asarray(sum(every)).astype("c8"))


def test_tensors_that_are_moved():
    for tensors, every in cases(("f4", "i2", "u1", "?", "c8", "c16")):
        mine = tensors[rank]
        together = np.concatenate([rows(one) for one in every])
        same(as_numpy(hvd.broadcast(mine, size - 1)), every[-1])
        same(as_numpy(hvd.allgather(mine)), together)
        if mine.dim():
            same(as_numpy(hvd.alltoall(torch.cat([mine] * size), [mine.shape[0]] * size)[0]), together)
        into = [torch.empty(mine.shape, dtype=mine.dtype) for _ in every]
        dist.distributed_c10d._get_default_group().allgather([into], [mine]).wait()
        for got, wanted in zip(into, every):
            same(as_numpy(got), wanted)
        for move in (lambda: hvd.broadcast_(mine, size - 1), lambda: dist.broadcast(mine, size - 1)):
            move()
            same(as_numpy(mine), every[-1])
            mine.copy_(torch.from_numpy(every[rank]))


def test_all_gather_coalesced():
    if not hasattr(dist, "all_gather_coalesced"):
        return
    for count in (1, size, size + 1):
        mine = [torch.full((i + 1,), float(10 * rank + i)) for i in range(count)]
        into = [[torch.empty(i + 1) for i in range(count)] for _ in range(size)]
        dist.all_gather_coalesced(into, mine)
        for of, i in itertools.product(range(size), range(count)):
            same(into[of][i].numpy(), np.full(i + 1, 10 * of + i, "f4"))


check.run(globals())
