# Tensors that share memory within one call: each counts as it was, as over gloo. In torch.distributed, muster.torch and muster.arrays.
# ranks: 2 4
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
import muster.torch as hvd

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
everyone = range(size)
SUM = sum(range(1, size + 1))
LARGE = 3 << 20  # elements: reduced in place, in no buffer


def ramp(count=6):
    return torch.arange(float(count)) * (rank + 1)


def test_begin():
    dist.init_process_group("muster", timeout=datetime.timedelta(seconds=120))
    hvd.init()


def coalesced(tensors, **more):
    group = dist.distributed_c10d._get_default_group()
    return group.allreduce_coalesced(tensors, **more)


def test_one_tensor_twice():
    for count in (1, 1000, LARGE):
        for _ in range(3):
            calls = [2 * [torch.full((count,), float(i + rank))] for i in range(3)]
            futures = [coalesced(tensors).get_future() for tensors in calls]
            for i, future in enumerate(futures):
                for tensor in future.wait():
                    assert (tensor == size * i + sum(everyone)).all(), (count, i, tensor)


def test_views_that_overlap():
    for count in (6, LARGE):
        third = count // 3
        whole = ramp(count)
        parts = [whole[: 2 * third], whole[third:], whole[: third * 2 : 2], whole.view(3, -1).t()[1:], whole[:0]]
        coalesced(parts).wait()
        assert torch.equal(whole, torch.arange(float(count)) * SUM), whole
    flags = torch.tensor([rank == 0, rank == 1, False])
    options = dist.AllreduceCoalescedOptions() if hasattr(dist, "AllreduceCoalescedOptions") else dist.distributed_c10d.AllreduceCoalescedOptions()
    options.reduceOp = dist.ReduceOp.SUM
    dist.distributed_c10d._get_default_group().allreduce_coalesced([flags[:2], flags[1:]], options).wait()
    assert flags.tolist() == [True, True, False]


def test_all_gathers_that_read_what_others_write():
    for count in (2, LARGE // 4):
        whole = torch.full((2 * size * count,), -1.0)
        first, second = whole[: size * count], whole[size * count :]
        first[:count], second[:count] = float(rank), float(10 + rank)
        dist.distributed_c10d._get_default_group().allgather_into_tensor_coalesced([first, second], [second[:count], first[:count]]).wait()
        assert torch.equal(first.view(size, -1)[:, 0], torch.tensor([10.0 + of for of in everyone])), whole
        assert torch.equal(second.view(size, -1)[:, -1], torch.tensor([float(of) for of in everyone])), whole
        out = torch.empty(size * count)
        given = [torch.full((count,), float(rank)), torch.full((count,), float(10 + rank))]
        dist.distributed_c10d._get_default_group().allgather_into_tensor_coalesced([out, out], given).wait()
        assert torch.equal(out.view(size, -1)[:, 0], torch.tensor([10.0 + of for of in everyone])), out  # the last counts


def test_reduce_scatters_that_read_what_others_write():
    for count in (2, LARGE // 4):
        a, b = torch.full((size * count,), float(rank)), torch.full((size * count,), float(10 * rank))
        outs = [b[:count], a[count : 2 * count]]
        dist.distributed_c10d._get_default_group().reduce_scatter_tensor_coalesced(outs, [a, b]).wait()
        assert (outs[0] == sum(everyone)).all() and (outs[1] == 10 * sum(everyone)).all(), outs


def test_lists_that_share_memory():
    t = torch.tensor([float(rank)])
    into = [t] * size
    dist.all_gather(into, t)
    assert t == size - 1
    whole = torch.arange(float(size)) + 10 * rank
    dist.all_to_all(list(whole.split(1)), list(whole.split(1)))
    assert torch.equal(whole, torch.arange(float(size)) * 10 + rank)
    whole = torch.arange(float(size)) + 10 * rank
    dist.all_to_all_single(whole, whole)
    assert torch.equal(whole, torch.arange(float(size)) * 10 + rank)
    whole = torch.full((2 * size,), float(rank))
    dist.reduce_scatter(whole[1:3], [whole[i : i + 2] for i in everyone])
    assert whole[1:3].tolist() == [sum(everyone)] * 2
    outs = [[torch.empty(1)] * 2 for _ in everyone]
    t = torch.tensor([float(rank)])
    dist.distributed_c10d._get_default_group().allgather_coalesced(outs, [t, t]).wait()
    assert [of[0].item() for of in outs] == list(everyone)


def test_groups_of_horovod():
    for count in (4, LARGE):
        t = torch.full((count,), float(rank))
        calls = [2 * [torch.full((count,), float(i + rank))] for i in range(3)]
        handles = [hvd.grouped_allreduce_async_(tensors, op=hvd.Sum, name=f"alias.{count}.{i}") for i, tensors in enumerate(calls)]
        for i, handle in enumerate(handles):
            for tensor in hvd.synchronize(handle):
                assert (tensor == size * i + sum(everyone)).all(), (count, i, tensor)
        given = [t, t[1:], t]
        for tensor in hvd.grouped_allreduce(given, op=hvd.Sum) + [one[: count - 1] for one in hvd.grouped_reducescatter(3 * [t.view(1, -1).expand(size, -1)], op=hvd.Sum)]:
            assert (tensor == sum(everyone)).all()
        assert (t == rank).all()
    whole = ramp()
    hvd.grouped_allreduce_([whole[:4], whole[2:], whole.view(2, 3).t()], op=hvd.Sum)
    assert torch.equal(whole, torch.arange(6.0) * SUM)
    numbers = torch.arange(6) * size + rank
    hvd.grouped_allreduce_([numbers[:4], numbers[2:]])  # averages of integers, by way of wider ones
    assert numbers.tolist() == [i * size + sum(everyone) // size for i in range(6)]
    for tensor in hvd.grouped_allgather(2 * [torch.tensor([float(rank)])]):
        assert tensor.tolist() == list(everyone)


def test_arrays():
    try:
        import numpy as np
        from muster import arrays
    except ImportError:
        return
    whole = np.arange(6.0) * (rank + 1)
    for made in arrays.grouped_allreduce([whole, whole, whole[::-1]], op=arrays.Sum)[:2]:
        assert (made == np.arange(6.0) * SUM).all()
    a, b = arrays.broadcast_all([whole, whole], size - 1)
    assert (a == np.arange(6.0) * size).all() and (b == a).all() and whole[1] == rank + 1


def test_the_library_refuses_a_group_that_writes_what_it_reads():
    import _muster_native as native

    tensor = torch.zeros(8)
    at, comm = tensor.data_ptr(), muster.world.comm()
    for second in ((at, at), (at + 4, at + 4), (at + 28, at + 28 - 16 * 4)):
        listed = [("one", at, at, (8,), native.F32), ("two", *second, (8,) if second[0] == at else (7,) if second[0] == at + 4 else (1,), native.F32)]
        check.raises(ValueError, lambda: comm.submit_group(native.ALLREDUCE, native.SUM, "both", listed), '"one"', '"two"', "share memory")  # noqa: B023
        check.raises(ValueError, lambda: comm.prepare(native.SUM, "both", listed), '"one"', '"two"', "share memory")  # noqa: B023
    dist.barrier()


check.run(globals())
