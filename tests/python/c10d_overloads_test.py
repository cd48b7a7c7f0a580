# Every form of a process group's calls that torch's ProcessGroup has, futures in inference mode, and calls compared by TORCH_DISTRIBUTED_DEBUG=DETAIL.
# ranks: 2 3
# together: c10d_calls
import datetime
import os

import check

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    check.skip(f"no PyTorch: {error}")
import muster.distributed  # torch before 2.5 does not find the backend by itself

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
everyone = range(size)
SUM = sum(range(1, size + 1))
Op = dist.ReduceOp
MINUTE = datetime.timedelta(seconds=60)


def mine(*shape):
    return torch.full(shape or (3,), float(rank + 1))


def group():
    return dist.distributed_c10d._get_default_group()


def equal(tensor, value, shape=(3,)):
    assert tuple(tensor.shape) == shape and (tensor == value).all(), (tensor, value)


def test_begin():
    dist.init_process_group("muster", timeout=MINUTE)


def test_reductions():
    pg = group()
    for begin, value in (
        (lambda t: pg.allreduce(t), SUM),
        (lambda t: pg.allreduce(tensor=t, op=Op.MAX), size),
        (lambda t: pg.allreduce(t, Op.MAX, MINUTE), size),
        (lambda t: pg.allreduce([t], Op.MIN), 1),
        (lambda t: pg.allreduce((t,), op=Op.MAX, timeout=None), size),
        (lambda t: pg.allreduce(tensors=[t]), SUM),
        (lambda t: pg.allreduce([t], dist.AllreduceOptions()), SUM),
        (lambda t: pg.allreduce([t], opts=dist.AllreduceOptions()), SUM),
        (lambda t: pg.allreduce_coalesced(tensors=[t]), SUM),
    ):
        for shape in ((3,), (1,), (), (2, 3)):
            tensor = mine(*shape) if shape else torch.tensor(float(rank + 1))
            (result,) = begin(tensor).get_future().wait()
            equal(result, value, shape)
            equal(tensor, value, shape)
    for root in everyone:
        for begin, value in (
            (lambda t: pg.reduce(t, root), SUM),
            (lambda t: pg.reduce(t, root=root, op=Op.MAX), size),
            (lambda t: pg.reduce(tensor=t, root=root, op=Op.SUM, timeout=MINUTE), SUM),
        ):
            tensor = mine()
            begin(tensor).wait()
            equal(tensor, value if rank == root else rank + 1)
    parts = [torch.full((2,), float(rank + to)) for to in everyone]
    for begin in (
        lambda out: pg.reduce_scatter(out, parts),
        lambda out: pg.reduce_scatter([out], [parts]),
        lambda out: pg.reduce_scatter(out, parts, Op.SUM, MINUTE),
        lambda out: pg._reduce_scatter_base(outputTensor=out, inputTensor=torch.cat(parts)),
    ):
        out = torch.empty(2)
        begin(out).wait()
        equal(out, sum(everyone) + size * rank, (2,))


def test_moves():
    pg = group()
    for root in everyone:
        for begin in (lambda t: pg.broadcast(t, root), lambda t: pg.broadcast(t, root=root), lambda t: pg.broadcast(tensor=t, root=root, timeout=MINUTE)):
            for shape in ((3,), (1,)):
                tensor = mine(*shape)
                begin(tensor).wait()
                equal(tensor, root + 1, shape)
        outs = [torch.empty(3) for _ in everyone] if rank == root else []
        for begin in (lambda: pg.gather(outs, mine(), root), lambda: pg.gather(output_tensors=outs, input_tensor=mine(), root=root)):
            begin().wait()
            for of, out in enumerate(outs):
                equal(out, of + 1)
                out.zero_()
        parts = [torch.full((3,), float(to)) for to in everyone] if rank == root else []
        for begin in (lambda out: pg.scatter(out, parts, root), lambda out: pg.scatter(output_tensor=out, input_tensors=parts, root=root)):
            out = torch.empty(3)
            begin(out).wait()
            equal(out, rank)
    for begin in (
        lambda outs: pg.allgather(outs, mine()),
        lambda outs: pg.allgather(outs, mine(), MINUTE),
        lambda outs: pg.allgather(output_tensors=outs, input_tensor=mine()),
        lambda outs: pg.allgather(output_tensors=[outs], input_tensors=[mine()]),
    ):
        outs = [torch.empty(3) for _ in everyone]
        begin(outs).wait()
        for of, out in enumerate(outs):
            equal(out, of + 1)
    given, out = torch.arange(float(size)) + 10 * rank, torch.empty(size)
    for begin in (lambda: pg.alltoall_base(out, given, [], []), lambda: pg.alltoall_base(out, given, [1] * size, [1] * size, timeout=MINUTE)):
        begin().wait()
        assert out.tolist() == [10.0 * of + rank for of in everyone]
    pg.alltoall(list(out.split(1)), list(given.split(1)), timeout=MINUTE).wait()
    assert out.tolist() == [10.0 * of + rank for of in everyone]
    pg.barrier().wait()
    pg.barrier(timeout=MINUTE).wait()
    right, left = (rank + 1) % size, (rank - 1) % size
    work = pg.send([mine()], dstRank=right, tag=1)
    pg.recv([out := torch.empty(3)], srcRank=left, tag=1).wait()
    work.wait()
    equal(out, left + 1)


def test_what_is_no_form_is_refused():
    pg = group()
    check.raises(TypeError, lambda: pg.broadcast(mine()), "root")
    check.raises(TypeError, lambda: pg.allreduce(mine(), Op.MAX, MINUTE, 1), "arguments")
    check.raises(TypeError, lambda: pg.allreduce(mine(), root=1), "root")
    check.raises(TypeError, lambda: pg.allgather(mine()), "input_tensor")
    check.raises(ValueError, lambda: pg.allreduce([mine(), mine()]), "allreduce_coalesced")
    outs = [mine() for _ in everyone]
    for root in (-1, size):
        for call in (lambda: pg.reduce(mine(), root), lambda: pg.broadcast(mine(), root), lambda: pg.gather(outs, mine(), root), lambda: pg.scatter(mine(), outs, root)):  # noqa: B023
            check.raises(ValueError, call, f"rank {root}", f"group of {size}")
    assert pg.options._timeout == MINUTE  # of which torch makes groups for pipelines


def test_futures_in_inference_mode():
    with torch.inference_mode():
        outs = [torch.zeros(2) for _ in everyone]
        dist.all_gather(outs, mine(2), async_op=True).get_future().wait()
        for of, out in enumerate(outs):
            equal(out, of + 1, (2,))
        tensor = mine(2, 3).t()
        dist.all_reduce(tensor, async_op=True).get_future().wait()
        equal(tensor, SUM, (3, 2))
        flags = torch.tensor([rank == 0, False])
        dist.all_reduce(flags, op=Op.BOR, async_op=True).get_future().then(lambda future: future.value()).wait()
        assert flags.tolist() == [True, False]
        image = mine(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
        dist.broadcast(image, size - 1, async_op=True).get_future().wait()
        equal(image, size, (2, 3, 4, 4))
        group().allreduce_coalesced([tensor.fill_(1), tensor]).get_future().wait()
        equal(tensor, size, (3, 2))
    work = dist.all_reduce(tensor, async_op=True)  # made in inference mode
    work.get_future().wait()
    equal(tensor, size * size, (3, 2))
    weights = torch.nn.Parameter(mine(2, 3).t())  # as the thread that began it: a future's thread asks for no gradients of it
    dist.all_reduce(weights, async_op=True).get_future().wait()
    equal(weights, SUM, (3, 2))


def test_calls_are_compared_on_request():
    levels, before = dist.DebugLevel, dist.get_debug_level()
    dist.set_debug_level(levels.DETAIL)
    try:
        pg = dist.new_group(list(everyone), timeout=MINUTE)
    finally:
        dist.set_debug_level(before)
    for _ in range(3):
        tensor = mine()
        dist.all_reduce(tensor, group=pg)
        equal(tensor, SUM)
    same_size = torch.ones(4, 5) if rank == 0 else torch.ones(5, 4)
    error = check.raises(
        RuntimeError, lambda: dist.all_reduce(same_size, group=pg), "Detected mismatch between collectives", "Rank 0", "ALLREDUCE", "[4, 5] vs [5, 4]", "Rank 1"
    )
    assert error.ranks == tuple(range(1, size))
    call = (lambda: pg.allreduce([mine()])) if rank == 0 else (lambda: pg.reduce([mine()]))
    check.raises(RuntimeError, call, "Op type: ALLREDUCE vs REDUCE", "TensorDtypes=Float", "TensorDeviceTypes=cpu")
    call = (lambda: pg.barrier()) if rank == 0 else (lambda: pg.broadcast(mine(), 0))
    check.raises(RuntimeError, call, "BARRIER vs BROADCAST")
    check.raises(RuntimeError, lambda: pg.allreduce(torch.ones(3, dtype=torch.float64 if rank == 0 else torch.int64)), "Double vs Long")
    many = [torch.ones(2) for _ in range(400 + (rank == 0))]
    check.raises(RuntimeError, lambda: pg.allreduce_coalesced(many), "CollectiveFingerPrint", "...")
    uneven = [torch.empty(of + 1) for of in everyone]
    dist.all_gather(uneven, mine(rank + 1), group=pg)
    dist.all_to_all_single(torch.empty(rank * size), torch.ones(sum(everyone)), [rank] * size, list(everyone), group=pg)
    dist.reduce_scatter(torch.empty(rank + 1), [torch.ones(to + 1) for to in everyone], group=pg)
    objects = [None] * size
    dist.all_gather_object(objects, "x" * rank, group=pg)
    dist.barrier(group=pg)
    tensor = mine()
    pg.allreduce(tensor).wait()  # a mismatch has not broken the group
    equal(tensor, SUM)


def test_a_sharded_tensor_is_gathered_where_there_is_no_gpu():
    """torch gathers it on the backend's first device that is not the CPU, and its usual build knows of CUDA on every machine."""
    if torch.cuda.is_available():
        return
    try:
        from torch.distributed._shard import sharded_tensor
        from torch.distributed._shard.sharding_spec import ChunkShardingSpec
    except ValueError:  # torch 1.13 with Python 3.11
        return
    sharded = sharded_tensor.ones(ChunkShardingSpec(dim=0, placements=[f"rank:{of}/cpu" for of in everyone]), 2 * size, 3)
    out = torch.empty(2 * size, 3) if rank == 0 else None
    sharded.gather(0, out)
    assert rank != 0 or (out == 1).all()


check.run(globals())
