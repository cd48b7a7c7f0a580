# The collectives on torch's tensors: values, types, shapes, names, process sets, errors.
# ranks: 1 2 3 4
# together: torch
import gc
import warnings

import check

try:
    import torch
except ImportError:
    check.skip("torch is not installed")

import muster
import muster.torch as hvd
from muster.torch import mpi_ops

hvd.init(process_sets="dynamic")
rank, size = hvd.rank(), hvd.size()

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int32, torch.int64, torch.uint8, torch.int8)
OTHERS = (torch.bool, torch.int16, torch.complex64)


def same(got, wanted):
    wanted = torch.as_tensor(wanted)
    assert got.shape == wanted.shape, (got, wanted)
    assert torch.equal(got.double() if got.dtype in FLOATS else got, wanted.to(torch.float64 if got.dtype in FLOATS else got.dtype)), (got, wanted)


def of_all(make):
    return [make(one) for one in range(size)]


def test_constants():
    assert [hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product] == [0, 1, 2, 3, 4, 5]
    assert hvd.HorovodInternalError is muster.CollectiveError and mpi_ops.allreduce is hvd.allreduce


def test_reductions_of_all_types():
    for kind in FLOATS + INTEGERS:
        values = of_all(lambda one: torch.tensor([one + 1, 2, 5 - one], dtype=kind).double())
        stacked = torch.stack(values)
        tensor = values[rank].to(kind)
        kept = tensor.clone()
        same(hvd.allreduce(tensor, op=hvd.Sum), stacked.sum(0))
        same(hvd.allreduce(tensor, op=hvd.Min), stacked.min(0).values)
        same(hvd.allreduce(tensor, op=hvd.Max), stacked.max(0).values)
        same(hvd.allreduce(tensor, op=hvd.Product), stacked.prod(0))
        average = stacked.sum(0) / size
        got = hvd.allreduce(tensor)
        assert got.dtype == kind
        if kind in FLOATS:
            assert torch.allclose(got.double(), average, rtol=1e-2), (got, average)
        else:
            same(got, average.trunc())
        assert torch.equal(tensor, kept)


def test_integers_truncate_towards_zero():
    for kind in (torch.int32, torch.int64):
        same(hvd.allreduce(torch.tensor([-7 if rank == 0 else 0, 7 if rank == 0 else 0], dtype=kind)), [-(7 // size), 7 // size])
        same(hvd.allreduce(torch.tensor([-3, 3], dtype=kind), op=hvd.Sum, prescale_factor=0.5), [-size, size])
        same(hvd.allreduce(torch.tensor([-3, 3], dtype=kind), op=hvd.Sum, postscale_factor=0.5), [-(3 * size // 2), 3 * size // 2])
    large = 2**62 + 1
    same(hvd.allreduce(torch.tensor([large if rank == 0 else 0]), op=hvd.Sum), [large])


def test_factors():
    tensor = torch.full((3,), rank + 1.0)
    total = size * (size + 1) / 2
    same(hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0), [2 * total] * 3)
    same(hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.0), [0.0] * 3)
    same(hvd.allreduce(tensor, op=hvd.Sum, postscale_factor=0.0), [0.0] * 3)
    check.raises(ValueError, lambda: hvd.allreduce(tensor, prescale_factor=float("inf")), "finite")


def test_in_place_whatever_the_tensor_is():
    """What is usual goes by one call of the extension, the rest by another way: both give the same."""
    total = size * (size + 1) // 2
    own = rank + 1
    same(hvd.allreduce_(torch.full((2, 3), float(own)).t(), op=hvd.Sum), torch.full((3, 2), float(total)))
    same(hvd.allreduce_(torch.full((1,) * 9, float(own)), op=hvd.Sum), torch.full((1,) * 9, float(total)))
    same(hvd.allreduce_(torch.tensor(float(own)), op=hvd.Max), float(size))
    same(hvd.allreduce_(torch.empty(0)), torch.empty(0))
    for kind in INTEGERS:
        same(hvd.allreduce_(torch.tensor([own, own], dtype=kind), op=hvd.Sum), [total, total])
        same(hvd.allreduce_(torch.tensor([own], dtype=kind)), [total // size])
        same(hvd.allreduce_(torch.tensor([4 * own], dtype=kind), op=hvd.Sum, prescale_factor=0.5), [2 * total])
    same(hvd.allreduce_(torch.nn.Parameter(torch.full((2,), float(own))).data, prescale_factor=2.0, postscale_factor=0.5, op=hvd.Sum), [float(total)] * 2)
    same(hvd.allreduce_(torch.full((2,), float(own)), op=hvd.Sum, prescale_factor=0), [0.0, 0.0])
    same(hvd.allreduce_(torch.full((2,), float(own)), name="long" * 100, op=hvd.Sum), [float(total)] * 2)
    same(hvd.allreduce_(torch.tensor([rank == 0]), op=hvd.Max), [True])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(hvd.allreduce_(torch.full((2,), float(own)), average=False), [float(total)] * 2)
    check.raises(ValueError, lambda: hvd.allreduce_async_(torch.ones(2), op=17), "17")
    check.raises(ValueError, lambda: hvd.allreduce_async_(torch.eye(2).to_sparse()), "layout")
    check.raises(ValueError, lambda: hvd.allreduce_async_(torch.ones(1), prescale_factor=float("nan")), "finite")
    if size > 1:
        handle = None
        if rank == 0:
            handle = hvd.allreduce_async_(torch.ones(2), name="twice in place")
            check.raises(ValueError, lambda: hvd.allreduce_async_(torch.ones(2), name="twice in place"), "in flight")
        hvd.barrier()  # until then the first one of rank 0 lacks the others'
        handle = handle or hvd.allreduce_async_(torch.ones(2), name="twice in place")
        same(hvd.synchronize(handle), [1.0, 1.0])
    handle = hvd.allreduce_async_(torch.full((1000,), float(own)), name="dropped in place", op=hvd.Sum)  # nobody else holds the tensor
    gc.collect()
    same(hvd.synchronize(handle), [float(total)] * 1000)


def test_bool_and_types_that_cannot_be_added():
    same(hvd.allreduce(torch.tensor([rank == 0, True, False]), op=hvd.Max), [True, True, False])
    same(hvd.allreduce(torch.tensor([rank == 0, True, False]), op=hvd.Min), [size == 1, True, False])
    check.raises(ValueError, lambda: hvd.allreduce(torch.tensor([True]), op=hvd.Sum), "Max for or")
    check.raises(ValueError, lambda: hvd.allreduce(torch.zeros(2, dtype=torch.int16)), "int16", "int32")
    check.raises(ValueError, lambda: hvd.allreduce(torch.zeros(2), op=9), "9 is no reduction")


def test_the_deprecated_argument_average():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same(hvd.allreduce(torch.ones(2), average=False), [size] * 2)
        same(hvd.allreduce(torch.ones(2), average=True), [1] * 2)
    assert [one.category for one in caught] == [DeprecationWarning] * 2 and all(one.filename == __file__ for one in caught), caught
    check.raises(ValueError, lambda: hvd.allreduce(torch.ones(2), average=True, op=hvd.Sum), "op alone")


def test_shapes():
    for shape in ((), (0,), (3, 0, 2), (1,) * 8, (2,) * 10):
        tensor = torch.full(shape, float(rank))
        same(hvd.allreduce(tensor, op=hvd.Max), torch.full(shape, size - 1.0))
        same(hvd.broadcast(tensor, size - 1), torch.full(shape, size - 1.0))
        gathered = hvd.allgather(tensor)
        assert gathered.shape == ((size,) if shape == () else (size * shape[0], *shape[1:]))


def test_tensors_that_are_not_contiguous():
    base = torch.arange(24.0).reshape(1, 2, 3, 4)
    for tensor in (base.contiguous(memory_format=torch.channels_last), base.transpose(1, 3), base[:, :, ::2], torch.ones(1).expand(5)):
        wanted = (tensor * size).clone()
        same(hvd.allreduce(tensor, op=hvd.Sum), wanted)
        same(hvd.broadcast(tensor + rank, size - 1), tensor + size - 1)
        same(hvd.allgather(tensor), torch.cat([tensor] * size))
        if 0 in tensor.stride() or not tensor.numel():
            continue
        mine = torch.empty_strided(tensor.shape, tensor.stride()).copy_(tensor)
        strides = mine.stride()
        assert hvd.allreduce_(mine, op=hvd.Sum) is mine and mine.stride() == strides
        same(mine, wanted)
        mine.copy_(tensor + rank)
        assert hvd.broadcast_(mine, 0) is mine
        same(mine, tensor)


def test_in_place_on_parameters():
    parameter = torch.nn.Parameter(torch.full((2, 3), float(rank)).t())
    assert hvd.broadcast_(parameter, size - 1) is parameter
    same(parameter.detach(), torch.full((3, 2), size - 1.0))
    leaf = torch.ones(4, requires_grad=True)
    assert hvd.allreduce_(leaf, op=hvd.Sum) is leaf and leaf.is_leaf
    same(leaf.detach(), [size] * 4)


def test_handles():
    tensors = [torch.full((5,), float(i + rank)) for i in range(50)]
    handles = [hvd.allreduce_async(tensor, name=f"handles.{i}", op=hvd.Max) for i, tensor in enumerate(tensors)]
    assert len(set(handles)) == 50 and all(type(handle) is int for handle in handles)
    for i in reversed(range(50)):
        same(hvd.synchronize(handles[i]), [i + size - 1.0] * 5)
        assert hvd.synchronize(handles[i]) is None
        check.raises(ValueError, lambda: hvd.poll(handles[i]), "never given")
    handle = hvd.allreduce_async_(tensors[0], op=hvd.Sum)
    while not hvd.poll(handle):
        pass
    assert hvd.synchronize(handle) is tensors[0]


def test_dropped_tensors_live_until_the_request_has_ended():
    handles = []
    for i in range(20):
        handles.append(hvd.allreduce_async(torch.full((10000,), float(i)), name=f"dropped.{i}"))
        hvd.allreduce_async(torch.full((10000,), float(i)), name=f"dropped too.{i}")
    gc.collect()
    for i, handle in enumerate(handles):
        same(hvd.synchronize(handle), [float(i)] * 10000)


def test_names():
    tensor = torch.ones(3)
    first = hvd.allreduce_async(tensor, name="one")
    others = [hvd.broadcast_async(tensor, 0, name="one"), hvd.allgather_async(tensor, name="one"), hvd.reducescatter_async(tensor, name="one")]
    for handle in [first, *others]:
        hvd.synchronize(handle)
    if size > 1:
        # The name is in flight for certain on the rank that nobody has answered yet.
        if rank == 0:
            handle = hvd.allreduce_async(tensor, name="twice")
            check.raises(ValueError, lambda: hvd.allreduce_async(tensor, name="twice"), "allreduce.twice", "in flight")
            hvd.barrier()
        else:
            hvd.barrier()
            handle = hvd.allreduce_async(tensor, name="twice")
        same(hvd.synchronize(handle), [1.0] * 3)


def test_grouped_allreduce():
    tensors = [torch.full((i, 2), rank + i + 0.5) for i in range(4)] + [torch.tensor(rank, dtype=torch.int64), torch.ones(2, 3, dtype=torch.float16)]
    for in_place in (False, True):
        mine = [tensor.clone() for tensor in tensors]
        got = (hvd.grouped_allreduce_ if in_place else hvd.grouped_allreduce)(mine, op=hvd.Max)
        assert all((one is other) == in_place for one, other in zip(got, mine))
        for one, tensor in zip(got, tensors):
            same(one, (tensor + (size - 1 - rank) if tensor.dtype != torch.float16 else tensor).double())
    got = hvd.synchronize(hvd.grouped_allreduce_async([torch.tensor([rank]), torch.tensor([float(rank)])], name="mixed"))
    same(got[0], [(size - 1) // 2])
    same(got[1], [(size - 1) / 2])
    assert hvd.grouped_allreduce([]) == [] and hvd.grouped_allgather([]) == [] and hvd.grouped_reducescatter([]) == []
    got = hvd.synchronize(hvd.grouped_allreduce_async_([torch.ones(3, 2).t()], op=hvd.Sum))
    same(got[0], torch.full((2, 3), float(size)))


def test_allgather():
    for kind in FLOATS + INTEGERS + OTHERS:
        parts = of_all(lambda one: torch.full((one + 1, 2), one % 2, dtype=kind))
        same(hvd.allgather(parts[rank]), torch.cat(parts))
        same(hvd.allgather(torch.tensor(rank % 2, dtype=kind)), torch.tensor(of_all(lambda one: one % 2)).to(kind))
    parts = of_all(lambda one: torch.full((one, 3), float(one)))  # none of rank 0
    same(hvd.allgather(parts[rank]), torch.cat(parts))
    first, second = hvd.grouped_allgather([parts[rank], torch.tensor([rank > 0])], name="gathered")
    same(first, torch.cat(parts))
    same(second, of_all(lambda one: one > 0))


def test_broadcast():
    for kind in FLOATS + INTEGERS + OTHERS:
        for root in range(size):
            tensor = torch.tensor([[rank % 2, 1]], dtype=kind)
            same(hvd.broadcast(tensor, root), torch.tensor([[root % 2, 1]], dtype=kind))
            same(tensor, torch.tensor([[rank % 2, 1]], dtype=kind))
            same(hvd.broadcast_(torch.tensor(rank % 2, dtype=kind), root), torch.tensor(root % 2, dtype=kind))
    check.raises(hvd.HorovodInternalError, lambda: hvd.broadcast(torch.ones(1), size), "root rank", str(size))
    check.raises(hvd.HorovodInternalError, lambda: hvd.broadcast(torch.ones(1), -1), "root rank")


def test_alltoall():
    for kind in FLOATS + INTEGERS + OTHERS:
        # rank r gives rank i the number r % 2, i + 1 times
        splits = torch.arange(1, size + 1, dtype=torch.int32)
        tensor = torch.full((int(splits.sum()), 2), rank % 2, dtype=kind)
        got, rows = hvd.alltoall(tensor, splits)
        same(got, torch.cat(of_all(lambda one: torch.full((rank + 1, 2), one % 2, dtype=kind))))
        same(rows, torch.full((size,), rank + 1, dtype=torch.int32))
        assert rows.dtype == torch.int32
    same(hvd.alltoall(torch.arange(size) + 10 * rank), of_all(lambda one: rank + 10 * one))
    got, rows = hvd.alltoall(torch.zeros(0), [0] * size)
    assert got.shape == (0,) and rows.tolist() == [0] * size
    check.raises(ValueError, lambda: hvd.alltoall(torch.ones(size), torch.ones(size)), "float32")
    check.raises(ValueError, lambda: hvd.alltoall(torch.ones(size), [1] * (size + 1)), "splits")
    check.raises(ValueError, lambda: hvd.alltoall(torch.ones(size + 1), [1] * size), "splits")
    check.raises(ValueError, lambda: hvd.alltoall(torch.tensor(1.0)), "scalar")


def test_reducescatter():
    rows = 2 * size + 1  # one more for rank 0
    own = slice(0, 3) if rank == 0 else slice(1 + 2 * rank, 3 + 2 * rank)
    for kind in FLOATS + INTEGERS:
        tensor = (torch.arange(rows) + rank).to(kind).unsqueeze(1).expand(rows, 2)
        same(hvd.reducescatter(tensor, op=hvd.Sum), (torch.arange(rows) * size + size * (size - 1) // 2)[own].unsqueeze(1).expand(-1, 2))
        same(hvd.reducescatter(tensor, op=hvd.Max), (torch.arange(rows) + size - 1)[own].unsqueeze(1).expand(-1, 2))
    same(hvd.reducescatter(torch.full((size,), -3 if rank == 0 else 0)), [-(3 // size)])
    same(hvd.reducescatter(torch.ones(size), op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0), [1.5 * size])
    first, second = hvd.grouped_reducescatter([torch.ones(size, 2), torch.arange(size)], op=hvd.Sum)
    same(first, [[size, size]])
    same(second, [rank * size])
    if size > 1:
        same(hvd.reducescatter(torch.ones(1, 3)), torch.ones(1 if rank == 0 else 0, 3))
    check.raises(ValueError, lambda: hvd.reducescatter(torch.tensor(1.0)), "scalar")
    check.raises(ValueError, lambda: hvd.grouped_reducescatter([torch.tensor(1.0)]), "scalar")
    check.raises(hvd.HorovodInternalError, lambda: hvd.reducescatter(torch.ones(4), op=hvd.Adasum), "Adasum")


def test_sparse():
    indices = torch.tensor([[0, rank], [1, 1]])
    tensor = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0]), (size, 2))
    wanted = sum(torch.sparse_coo_tensor(torch.tensor([[0, one], [1, 1]]), torch.tensor([1.0, 2.0]), (size, 2)).to_dense() for one in range(size))
    for name in ("sparse", None):
        total = hvd.sparse_allreduce_async(tensor, name, hvd.Sum)
        average = hvd.sparse_allreduce_async(tensor, None if name is None else name + "2", hvd.Average)
        same(total().to_dense(), wanted)
        assert torch.allclose(average().to_dense(), wanted / size)
    check.raises(ValueError, lambda: hvd.allreduce(tensor), "sparse_allreduce_async")
    check.raises(ValueError, lambda: hvd.sparse_allreduce_async(torch.ones(2), "dense", hvd.Sum), "not sparse")


def test_adasum():
    same(hvd.allreduce(torch.ones(4), op=hvd.Adasum), [1.0] * 4)  # alike: their average
    if size == 2:
        same(hvd.allreduce(torch.tensor([1.0, 0.0]) if rank == 0 else torch.tensor([0.0, 1.0]), op=hvd.Adasum), [1.0, 1.0])  # orthogonal: their sum
    check.raises(ValueError, lambda: hvd.allreduce(torch.ones(4, dtype=torch.int32), op=hvd.Adasum), "integer")


def test_compression():
    tensor = torch.full((1000,), 1.0 + 2**-12)
    for compression, kind in ((hvd.Compression.fp16, torch.float16), (hvd.Compression.bf16, torch.bfloat16)):
        small, context = compression.compress(tensor)
        assert small.dtype == kind and compression.decompress(small, context).dtype == torch.float32
        same(compression.compress(torch.tensor([3]))[0], [3])
        for op in (hvd.Average, hvd.Sum, hvd.Max):
            got = hvd.allreduce(tensor, op=op, compression=compression)
            assert got.dtype == torch.float32
            same(got, [1.0 * (size if op == hvd.Sum else 1)] * 1000 if size > 1 or op == hvd.Max else got)
        got = hvd.grouped_allreduce([tensor, torch.ones(2, dtype=torch.float64), torch.tensor([4])], compression=compression)
        assert [one.dtype for one in got] == [torch.float32, torch.float64, torch.int64]
        assert hvd.reducescatter(torch.ones(size), compression=compression).dtype == torch.float32
    same(hvd.Compression.none.compress(tensor)[0], tensor)


def test_a_compression_of_ones_own():
    calls = []

    class Halves(hvd.Compression.none):
        @staticmethod
        def compress(tensor):
            calls.append("compress")
            return tensor[::2].clone(), tensor.shape

        @staticmethod
        def decompress(tensor, context):
            calls.append("decompress")
            return tensor.repeat_interleave(2).reshape(context)

    same(hvd.allreduce(torch.arange(4.0), compression=Halves), [0, 0, 2, 2])
    hvd.grouped_allreduce([torch.arange(4.0)] * 2, compression=Halves)
    assert calls == ["compress", "decompress"] + ["compress"] * 2 + ["decompress"] * 2


def test_process_sets():
    if size == 1:
        return
    last = hvd.add_process_set([0, size - 1] if size > 2 else [1])
    rest = hvd.add_process_set(hvd.ProcessSet([one for one in range(size) if one not in last.ranks]))
    mine = last if last.included() else rest
    for _ in range(1 + rank):  # names left out are counted for each set
        if mine.size() == 1:
            hvd.allreduce(torch.ones(1), process_set=mine)
    same(hvd.allreduce(torch.tensor([float(rank)]), op=hvd.Sum, process_set=mine), [sum(mine.ranks)])
    same(hvd.allreduce(torch.tensor([rank]), process_set=mine), [sum(mine.ranks) // mine.size()])
    same(hvd.allgather(torch.tensor([rank]), process_set=mine), mine.ranks)
    same(hvd.broadcast(torch.tensor([rank]), mine.ranks[-1], process_set=mine), mine.ranks[-1:])
    same(hvd.alltoall(torch.full((mine.size(),), rank), process_set=mine), mine.ranks)
    same(hvd.reducescatter(torch.full((mine.size(),), rank), op=hvd.Sum, process_set=mine), [sum(mine.ranks)])
    assert hvd.allgather_object(rank, process_set=mine) == mine.ranks
    assert hvd.broadcast_object(rank, mine.ranks[0], process_set=mine) == mine.ranks[0]
    hvd.barrier(process_set=mine)
    other = rest if mine is last else last
    check.raises(hvd.HorovodInternalError, lambda: hvd.broadcast(torch.ones(1), other.ranks[0], process_set=mine), "not in the process set")
    check.raises(NotImplementedError, lambda: hvd.allreduce(torch.ones(1), op=hvd.Adasum, process_set=mine))
    check.raises(ValueError, lambda: hvd.allreduce(torch.ones(1), process_set=other), "process set")
    check.raises(ValueError, lambda: hvd.allreduce(torch.ones(1), process_set=hvd.ProcessSet([0])), "not in use")
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [size])
    for one in (last, rest):
        assert hvd.remove_process_set(one)


def test_ranks_that_disagree_are_all_told():
    if size == 1:
        return
    cases = {
        "type": lambda: hvd.allreduce(torch.ones(2, dtype=torch.float32 if rank else torch.int32), op=hvd.Sum, name="type"),
        "shape": lambda: hvd.allreduce(torch.ones(2 + rank % 2), name="shape"),
        "op": lambda: hvd.allreduce(torch.ones(2), name="op", op=hvd.Sum if rank else hvd.Max),
        "root": lambda: hvd.broadcast(torch.ones(2), rank % 2, name="root"),
        "row": lambda: hvd.allgather(torch.ones(2, 1 + rank % 2), name="row"),
        "parts": lambda: hvd.grouped_allgather([torch.ones(1), torch.ones(2, 1 + rank % 2)], name="parts"),
    }
    for name, call in cases.items():
        error = check.raises(hvd.HorovodInternalError, call, "rank", name)
        assert isinstance(error, RuntimeError) and error.ranks, error
        same(hvd.allreduce(torch.ones(2), op=hvd.Sum), [size] * 2)


def test_calls_that_never_meet_end_with_what_each_rank_waits_in():
    if size == 1:
        return
    last = rank == size - 1
    for call in (
        lambda: hvd.allreduce(torch.ones(3), name="unmet" if last else "another"),
        lambda: hvd.barrier() if last else hvd.allreduce(torch.ones(3), name="another"),
        lambda: hvd.allgather(torch.ones(3)) if last else hvd.allreduce(torch.ones(3)),
        lambda: hvd.grouped_allreduce([torch.ones(2), torch.ones(3)], name="unmet" if last else "another"),
        lambda: hvd.add_process_set([0]) if last else hvd.broadcast_object("an object", 0),
    ):
        error = check.raises(muster.CollectiveError, call, "all ranks wait", "rank 0 (", f"rank {size - 1} (", " since ", " UTC")
        assert error.ranks == (size - 1,) or size == 2 and error.ranks == (1,), error.ranks
        same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [size])  # which has no name
        hvd.barrier()
    if size == 2:
        return
    ends = hvd.add_process_set([0, size - 1])
    if rank in (0, size - 1):
        check.raises(muster.CollectiveError, lambda: hvd.allreduce(torch.ones(1), name=str(rank), process_set=ends), f"process set {ends.process_set_id}")
        same(hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=ends), [2])
    hvd.remove_process_set(ends)


def test_other_devices_are_refused():
    check.raises(ValueError, lambda: hvd.allreduce(torch.ones(2, device="meta")), "meta")
    check.raises(ValueError, lambda: hvd.grouped_allreduce([torch.ones(2, device="meta"), torch.ones(2)]), "a group for each device")


def test_join():
    if size == 1:
        assert hvd.join() == 0
        return
    for first in range(size):
        if rank != first:
            same(hvd.allreduce(torch.ones(3), op=hvd.Sum, name="joined"), [size - 1] * 3)
            same(hvd.allreduce(torch.full((3,), size), name="joined average"), [size - 1] * 3)
            same(hvd.allgather(torch.tensor([rank]), name="joined rows"), [one for one in range(size) if one != first])
        last = hvd.join()
        assert last != first and hvd.allgather_object(last) == [last] * size


def test_nothing_works_before_init():
    hvd.shutdown()
    for call in (
        lambda: hvd.allreduce(torch.ones(1)),
        lambda: hvd.allgather(torch.ones(1)),
        lambda: hvd.broadcast(torch.ones(1), 0),
        lambda: hvd.alltoall(torch.ones(1)),
        lambda: hvd.reducescatter(torch.ones(1)),
        lambda: hvd.grouped_allreduce([torch.ones(1)]),
        hvd.barrier,
        hvd.join,
        hvd.rank,
    ):
        check.raises(ValueError, call, "use hvd.init()")
    hvd.init()
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [size])


check.run(globals())
