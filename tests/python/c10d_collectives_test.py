# Every collective of torch.distributed over muster, against what it should give.
# ranks: 1 2 3
# together: c10d
import datetime
import os
import socket

import check

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    check.skip(f"no PyTorch: {error}")
if not hasattr(dist.Backend, "MUSTER"):
    import muster.distributed  # torch before 2.5 does not find the backend by itself

Op = dist.ReduceOp
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
everyone = range(size)
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int32, torch.int64, torch.uint8, torch.int8, torch.int16] + [getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)]
NARROW = [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]
COMPLEX = [torch.complex64, torch.complex128]


def values(of, dtype=torch.float32, count=5):
    """What rank `of` gives: small whole numbers, so that every order of additions gives the same."""
    if dtype is torch.bool:
        return torch.tensor([(of + i) % 2 == 0 for i in range(count)])
    made = torch.tensor([1 + (of * 3 + i) % 4 for i in range(count)])
    return made.to(torch.float32).to(dtype) if dtype in NARROW else made.to(dtype)


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a, b)
    assert torch.equal(a.float() if a.dtype in NARROW else a, b.float() if b.dtype in NARROW else b), (a, b)


def expected(how, dtype, members=everyone):
    wide = torch.complex128 if dtype in COMPLEX else torch.int64 if dtype in INTEGERS or dtype is torch.bool else torch.float64
    all_of_them = torch.stack([values(of, dtype).to(torch.float32).to(wide) if dtype in NARROW else values(of, dtype).to(wide) for of in members])
    if how == "SUM":
        result = all_of_them.sum(0)
    elif how == "AVG":
        result = all_of_them.sum(0) / len(members) if wide is not torch.int64 else torch.div(all_of_them.sum(0), len(members), rounding_mode="trunc")
    elif how == "PRODUCT":
        result = all_of_them.prod(0)
    elif how in ("MIN", "MAX"):
        result = getattr(all_of_them, how.lower())(0).values
    else:
        result = all_of_them[0]
        for row in all_of_them[1:]:
            result = {"BAND": result & row, "BOR": result | row, "BXOR": result ^ row}[how]
    return (result != 0 if dtype is torch.bool else result.to(torch.float32) if dtype in NARROW else result).to(dtype)


def test_it_is_there():
    dist.init_process_group("muster", timeout=datetime.timedelta(seconds=60))
    assert dist.get_backend() == "muster" and (dist.get_rank(), dist.get_world_size()) == (rank, size)


def test_allreduce_of_every_type():
    for dtype in FLOATS + INTEGERS + NARROW + COMPLEX + [torch.bool]:
        for how in ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR"):
            op = getattr(Op, how)
            bits, orders = how in ("BAND", "BOR", "BXOR"), how in ("MIN", "MAX")
            if (bits and dtype not in INTEGERS + [torch.bool]) or (orders and dtype in COMPLEX) or (how == "AVG" and dtype in (torch.bool, getattr(torch, "uint64", None))):
                tensor = values(rank, dtype)
                if not dtype.is_complex:
                    check.raises(ValueError, lambda: dist.all_reduce(tensor, op), "no meaning")
                continue
            tensor = values(rank, dtype)
            if dtype.is_complex and how == "PRODUCT":
                options = dist.AllreduceOptions()
                options.reduceOp = op
                dist.distributed_c10d._get_default_group().allreduce([tensor], options).wait()
            else:
                dist.all_reduce(tensor, op)
            wanted = expected(how, dtype)
            if how == "AVG" and dtype in FLOATS + NARROW + COMPLEX:
                assert torch.allclose(tensor.to(torch.complex128), wanted.to(torch.complex128), rtol=0.13 if dtype in NARROW else 1e-2), (dtype, tensor, wanted)
            else:
                same(tensor, wanted)


def test_premultiplied_sum():
    try:
        op = (getattr(dist.distributed_c10d, "_make_nccl_premul_sum", None) or torch._C._distributed_c10d._make_nccl_premul_sum)(0.5)
        tensor = values(rank)
        dist.all_reduce(tensor, op)
        same(tensor, expected("SUM", torch.float32) / 2)
    except (AttributeError, ValueError) as error:
        assert torch.__version__.startswith("1."), error


def test_tensors_that_are_not_contiguous():
    whole = torch.zeros(3, 4)
    part = whole[:, 1]
    part.fill_(rank)
    dist.all_reduce(part)
    assert whole.sum() == 3 * sum(everyone) and whole[0, 1] == sum(everyone)
    image = torch.full((2, 3, 4, 4), float(rank)).contiguous(memory_format=torch.channels_last)
    dist.broadcast(image, size - 1)
    assert (image == size - 1).all() and image.is_contiguous(memory_format=torch.channels_last)


def test_many_of_one_name_in_flight():
    tensors = [torch.full((3,), float(i + rank)) for i in range(40)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        work.wait()
        same(tensors[i], torch.full((3,), float(size * i + sum(everyone))))
        assert work.is_completed() and work.is_success()


def test_futures():
    tensors = [values(rank) for _ in range(3)]
    futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]
    for future in futures:
        same(future.wait()[0], expected("SUM", torch.float32))
    after = dist.all_reduce(values(rank), async_op=True).get_future().then(lambda future: future.value()[0] * 2)
    same(after.wait(), expected("SUM", torch.float32) * 2)

    def again(future):  # as DistributedDataParallel's PowerSGD hook does
        return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

    same(dist.all_reduce(values(rank), async_op=True).get_future().then(again).wait(), expected("SUM", torch.float32) * size)


def test_broadcast():
    for dtype in FLOATS + INTEGERS + NARROW + COMPLEX + [torch.bool]:
        for root in everyone:
            tensor = values(rank, dtype)
            dist.broadcast(tensor, root)
            same(tensor, values(root, dtype))
    dist.broadcast(torch.empty(0), 0)
    scalar = torch.tensor(float(rank))
    dist.broadcast(scalar, size - 1)
    assert scalar == size - 1


def test_reduce():
    for root in everyone:
        tensor = values(rank)
        dist.reduce(tensor, root)
        same(tensor, expected("SUM", torch.float32) if rank == root else values(rank))
    tensor = values(rank, torch.bool)
    dist.reduce(tensor, 0, Op.MAX)
    same(tensor, expected("MAX", torch.bool) if rank == 0 else values(rank, torch.bool))


def test_allgather():
    for dtype in FLOATS + INTEGERS + NARROW + COMPLEX + [torch.bool]:
        into = [torch.empty_like(values(0, dtype)) for _ in everyone]
        dist.all_gather(into, values(rank, dtype))
        for of in everyone:
            same(into[of], values(of, dtype))
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    flat = torch.empty(size * 5)
    gather(flat, values(rank))
    same(flat, torch.cat([values(of) for of in everyone]))
    flat[rank * 5 : rank * 5 + 5] = values(rank + 1)
    gather(flat, flat[rank * 5 : rank * 5 + 5])  # in place, as FSDP does
    same(flat, torch.cat([values(of + 1) for of in everyone]))
    uneven = [torch.empty(of + 1) for of in everyone]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    for of in everyone:
        same(uneven[of], torch.full((of + 1,), float(of)))
    check.raises(ValueError, lambda: gather(torch.empty(size * 5 + 1), values(rank)), "elements")


def test_gather_and_scatter():
    for dtype in (torch.float32, torch.bool, torch.complex64, torch.int16):
        for root in everyone:
            into = [torch.empty_like(values(0, dtype)) for _ in everyone] if rank == root else None
            dist.gather(values(rank, dtype), into, root)
            for of in everyone if rank == root else ():
                same(into[of], values(of, dtype))
            out = torch.empty_like(values(0, dtype))
            dist.scatter(out, [values(of + root, dtype) for of in everyone] if rank == root else None, root)
            same(out, values(rank + root, dtype))


def test_reduce_scatter():
    def parts(of):
        return [values(of + to) for to in everyone]

    wanted = sum(values(of + rank) for of in everyone)
    out = torch.empty(5)
    dist.reduce_scatter(out, parts(rank))
    same(out, wanted)
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    scatter(out, torch.cat(parts(rank)))
    same(out, wanted)
    scatter(out, torch.cat(parts(rank)), op=Op.AVG)
    assert torch.allclose(out, wanted / size)
    whole = torch.cat(parts(rank))
    scatter(whole[rank * 5 : rank * 5 + 5], whole)
    same(whole[rank * 5 : rank * 5 + 5], wanted)
    short = torch.empty(5, dtype=torch.int16)
    scatter(short, torch.cat(parts(rank)).to(torch.int16), op=Op.BOR)
    wanted = parts(0)[rank].to(torch.int16)
    for of in everyone:
        wanted = wanted | values(of + rank).to(torch.int16)
    same(short, wanted)
    uneven = torch.empty(rank + 1)
    dist.reduce_scatter(uneven, [torch.full((to + 1,), float(to)) for to in everyone])
    same(uneven, torch.full((rank + 1,), float(size * rank)))


def test_what_torch_asks_of_a_group():
    group = dist.distributed_c10d._get_default_group()
    if not hasattr(dist.ProcessGroup, "_device_types"):  # torch 1
        return
    assert torch.device("cpu") in group._device_types and dist.distributed_c10d._get_object_coll_device() == "cpu"
    if hasattr(dist, "split_group") and size > 1:
        part = group.split_group(list(reversed(everyone))[: size - 1], group_desc="a part")
        assert (part is None) == (rank == 0)
        if part is not None:
            tensor = torch.ones(1)
            part.allreduce([tensor]).wait()
            assert part.rank() == size - 1 - rank and part.size() == size - 1 and tensor == size - 1 and part.group_desc == "a part"
    dist.barrier()


def test_alltoall():
    into = [torch.empty(2 + of) for of in everyone]
    dist.all_to_all(into, [torch.full((2 + rank,), 10.0 * rank + to) for to in everyone])
    for of in everyone:
        same(into[of], torch.full((2 + of,), 10.0 * of + rank))
    for dtype in (torch.float32, torch.bool, torch.complex64):
        out = torch.empty(size, 2, dtype=dtype)
        dist.all_to_all_single(out, torch.stack([values(10 * rank + to, dtype, 2) for to in everyone]))
        same(out, torch.stack([values(10 * of + rank, dtype, 2) for of in everyone]))
    for dtype in (torch.float32, torch.complex64):  # what rank 0 expects is not what is sent, though its sum is; then in all
        for more, splits in ((0, [0, 2] + [1] * (size - 2)), (1, [2] + [1] * (size - 1)), (1, None)):
            out, given = torch.zeros(size + (more if rank == 0 else 0), dtype=dtype), torch.ones(size, dtype=dtype)
            call = lambda: dist.all_to_all_single(out, given, splits if rank == 0 else [1] * size, [1] * size)  # noqa: E731
            if rank == 0 and size > 1:
                check.raises(ValueError, call, "rank 0" if splits else "splits" if size > 1 else "")
            elif size > 1 and splits:
                call()
        dist.barrier()
    given = torch.cat([torch.full((to, 3), float(rank)) for to in everyone])
    out = torch.empty(size * rank, 3)
    dist.all_to_all_single(out, given, [rank] * size, list(everyone))
    same(out, torch.cat([torch.full((rank, 3), float(of)) for of in everyone]))


def test_coalesced():
    group = dist.distributed_c10d._get_default_group()
    tensors = [values(rank), values(rank, torch.int64), values(rank, torch.bool)]
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = Op.SUM
    group.allreduce_coalesced(tensors, options).wait()
    for tensor in tensors:
        same(tensor, expected("SUM", tensor.dtype))
    outputs = [torch.empty(size * 5), torch.empty(size * 5, dtype=torch.int16)]
    group.allgather_into_tensor_coalesced(outputs, [values(rank), values(rank, torch.int16)]).wait()
    for output in outputs:
        same(output, torch.cat([values(of, output.dtype) for of in everyone]))
    scattered = [torch.empty(5), torch.empty(5, dtype=torch.int64)]
    group.reduce_scatter_tensor_coalesced(scattered, [torch.cat([values(rank, output.dtype)] * size) for output in scattered]).wait()
    for output in scattered:
        same(output, expected("SUM", output.dtype))
    if hasattr(dist, "_coalescing_manager") and not torch.__version__.startswith("1."):
        some = [values(rank) for _ in range(3)]
        with dist._coalescing_manager():
            for tensor in some:
                dist.all_reduce(tensor)
        for tensor in some:
            same(tensor, expected("SUM", torch.float32))


def test_sparse_sum():
    mine = torch.sparse_coo_tensor([[0, rank + 1]], [1.0, 2.0], (size + 2,))
    dist.all_reduce(mine)
    wanted = torch.zeros(size + 2)
    for of in everyone:
        wanted[0] += 1
        wanted[of + 1] += 2
    same(mine.to_dense(), wanted)


def test_sparse_sum_of_a_rank_without_entries():
    """zero_() makes all dimensions of a sparse gradient sparse; that of a rank with entries has sparse rows."""
    used, unused = torch.sparse_coo_tensor([[1]], [[2.0, 3.0]], (size + 1, 2)), torch.sparse_coo_tensor([[0]], [[1.0, 1.0]], (size + 1, 2)).zero_()
    mine = (used if rank == 0 else unused).clone()
    dist.all_reduce(mine)
    same(mine.to_dense(), used.to_dense())
    none = unused.clone()
    dist.all_reduce(none)
    assert not none.to_dense().any()


def test_sparse_tensors_that_do_not_fit_are_refused_on_all_ranks():
    if size == 1:
        return
    rows, elements = torch.sparse_coo_tensor([[1]], [[2.0, 3.0]], (3, 2)), torch.sparse_coo_tensor([[1], [0]], [2.0], (3, 2))
    check.raises(ValueError, lambda: dist.all_reduce(rows if rank == 0 else elements), "sparse dimensions")
    dist.barrier()


def test_objects():
    into = [None] * size
    dist.all_gather_object(into, {"rank": rank, "text": "x" * rank})
    assert into == [{"rank": of, "text": "x" * of} for of in everyone]
    objects = [("from", rank), None]
    dist.broadcast_object_list(objects, size - 1)
    assert objects[0] == ("from", size - 1)
    mine = [None]
    dist.scatter_object_list(mine, [f"to {of}" for of in everyone] if rank == 0 else [None] * size, 0)
    assert mine[0] == f"to {rank}"
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank, gathered, 0)
    assert gathered is None or gathered == list(everyone)


def test_barriers():
    dist.barrier()
    works = [dist.barrier(async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    dist.distributed_c10d._get_default_group().monitored_barrier(datetime.timedelta(seconds=30))


def test_groups_of_some_ranks():
    everybody = dist.new_group()
    tensor = values(rank)
    dist.all_reduce(tensor, group=everybody)
    same(tensor, expected("SUM", torch.float32))
    for members in ([size - 1], sorted({0, size - 1})):
        for _ in range(2):
            group = dist.new_group(members)
            if rank in members:
                assert dist.get_world_size(group) == len(members)
                tensor = values(rank)
                dist.all_reduce(tensor, group=group)
                same(tensor, expected("SUM", torch.float32, members))
                dist.broadcast(tensor, members[-1], group=group)
                dist.barrier(group=group)
                dist.destroy_process_group(group)


def test_messages():
    if size == 1:
        return
    right, left = (rank + 1) % size, (rank - 1) % size
    for dtype in (torch.float32, torch.bool, torch.complex64, torch.int16):
        work = dist.isend(values(rank, dtype), right)
        tensor = torch.empty_like(values(0, dtype))
        dist.recv(tensor, left)
        same(tensor, values(left, dtype))
        work.wait()
        nothing = dist.isend(torch.empty(0, 3, dtype=dtype), right)
        dist.barrier()  # it is there before it is asked for
        dist.recv(torch.empty(0, 3, dtype=dtype), left)
        nothing.wait()
    # By tag, in another order than they were sent; large enough not to fit into what a socket holds.
    works = [dist.isend(torch.full((400000,), float(tag)), right, tag=tag) for tag in range(3)]
    for tag in (2, 0, 1):
        tensor = torch.empty(400000)
        assert dist.irecv(tensor, left, tag=tag).wait()
        assert (tensor == tag).all()
    for work in works:
        work.wait()
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.empty(1)
            source = dist.recv(tensor)
            assert tensor == source
            seen.add(source)
        assert seen == set(range(1, size))
    else:
        dist.send(torch.tensor([float(rank)]), 0)
    dist.barrier()
    operations = [dist.P2POp(dist.isend, values(rank), right), dist.P2POp(dist.irecv, torch.empty(5), left)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(operations[1].tensor, values(left))
    group = dist.new_group([0, size - 1])
    if rank == 0:
        dist.send(values(7), size - 1, group=group)
    elif rank == size - 1:
        tensor = torch.empty(5)
        dist.recv(tensor, 0, group=group)
        same(tensor, values(7))
    out = torch.empty(2)
    check.raises(RuntimeError, lambda: (dist.send(torch.ones(3), right), dist.recv(out, left)), "bytes")


def test_wrong_calls_are_told():
    check.raises((ValueError, RuntimeError), lambda: dist.all_gather([torch.empty(5)] * (size + 1), values(rank)), "ranks")
    check.raises((ValueError, RuntimeError), lambda: dist.all_to_all_single(torch.empty(size + 1), torch.empty(size + 1), [1] * size, [2] * size), "splits")


def test_init_again():
    ports = []
    for _ in range(3):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    dist.broadcast_object_list(ports, 0)
    for port in ports:  # another for each turn: a fast rank might reach the store of the last
        dist.destroy_process_group()
        assert not dist.is_initialized()
        dist.init_process_group("muster", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
        tensor = values(rank)
        dist.all_reduce(tensor)
        same(tensor, expected("SUM", torch.float32))
    import muster

    muster.init()  # the same ranks
    assert (muster.rank(), muster.size()) == (rank, size)


def test_messages_as_between_nodes():
    """Each rank says that it is on a node of its own (which is not so): messages then go over TCP."""
    if size == 1:
        return
    from muster.distributed import communicators

    group = dist.distributed_c10d._get_default_group()
    assert group._mail is None
    group._communicator.nodes, of_this_node = size, communicators.place
    communicators.place = lambda: f"node {rank}"
    right, left = (rank + 1) % size, (rank - 1) % size
    work = dist.isend(values(rank, count=300000), right)
    tensor = torch.empty(300000)
    dist.recv(tensor, left)
    same(tensor, values(left, count=300000))
    work.wait()
    communicators.place = of_this_node
    dist.barrier()


check.run(globals())
