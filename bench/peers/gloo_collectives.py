"""A peer of `muster-bench collectives`: Gloo's collectives, through torch.distributed.

gloo_collectives.py FOLDER NAME RANK SIZE: speaks as mpi_collectives.c does. torch's all_reduce works in place; out of place the copy
into the result is part of the time.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

folder, name, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, name + ".meet"), rank=rank, world_size=size)
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32,
         "i64": torch.int64, "u8": torch.uint8, "i8": torch.int8}
OPS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
COMBINE = {"sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum}
sets, inputs, outputs = 0, [], []
kind, dtype, redop, root, mask, scale, active, product = "allreduce", torch.float32, "sum", 0, 63, 1, 1, False


def values(first, count, which, seed, r):
    if r >= active:
        return torch.full((count,), 1 if product else 0, dtype=torch.int64)
    i = torch.arange(first, first + count, dtype=torch.int64) + 2654435 * which + 40503 * seed + 1000003 * r
    h = ((i & 0xFFFFFFFF) * 2654435761 & 0xFFFFFFFF) >> 26  # the low half is right even where 64 bits overflow
    return 1 + (h >> 5) if product else scale * (h & mask)


def reduced(count, which, seed):
    result = values(0, count, which, seed, 0)
    for r in range(1, size):
        result = COMBINE[redop](result, values(0, count, which, seed, r))
    return result


def expected(count, which, seed):
    part = count // size
    if kind == "allreduce":
        return reduced(count, which, seed)
    if kind == "broadcast":
        return values(0, count, which, seed, root)
    return torch.cat([values(part * rank if kind == "alltoall" else 0, part, which, seed, r) for r in range(size)])


def own(result):
    return result.chunk(size)[rank]


def call(source, result, in_place):
    if kind == "allreduce":
        if not in_place:
            result.copy_(source)
        dist.all_reduce(result, op=OPS[redop])
    elif kind == "broadcast":
        dist.broadcast(result, root)
    elif kind == "allgather":
        dist.all_gather(list(result.chunk(size)), own(result) if in_place else source)
    else:
        dist.all_to_all_single(result, source)


def run(seed, in_place):
    for k, (source, result) in enumerate(zip(inputs, outputs)):
        made = values(0, source.numel(), k, seed, rank)
        result.view(torch.uint8).fill_(0xA5)
        if not in_place:
            source.copy_(made)
        else:
            (own(result) if kind == "allgather" else result).copy_(made)
    dist.barrier()
    begin = time.perf_counter()
    for source, result in zip(inputs, outputs):
        call(source, result, in_place)
    end = time.perf_counter()
    wrong = sum(int((result != expected(result.numel(), k, seed).to(dtype)).sum()) for k, result in enumerate(outputs))
    return (end - begin) * 1e6 / sets, wrong


with open(os.path.join(folder, f"{name}.{rank}")) as orders, open(os.path.join(folder, name + ".out"), "w") as answer:
    for line in iter(orders.readline, ""):
        words = line.split()
        if words[0] == "end":
            break
        if words[0] == "version":
            if rank == 0:
                print(0, "Gloo (torch " + torch.__version__ + ")", file=answer, flush=True)
        elif words[0] == "kind":
            kind, dtype, redop, root = words[1], TYPES[words[2]], words[3], int(words[4])
            mask, scale, active, product = int(words[5]), int(words[6]), int(words[7]), words[8] == "1"
            print(rank, 0, 0, file=answer, flush=True)
        elif words[0] == "tensors":
            sets = int(words[1])
            counts = [int(w) // torch.empty(0, dtype=dtype).element_size() for w in words[3:]]
            inputs = [torch.zeros(c // size if kind == "allgather" else c, dtype=dtype) for _ in range(sets) for c in counts]
            outputs = [torch.zeros(c, dtype=dtype) for _ in range(sets) for c in counts]
            print(rank, 0, 0, file=answer, flush=True)
        elif words[0] == "run":
            micros, wrong = run(int(words[1]), words[2] == "1")
            print(rank, f"{micros:.4f}", wrong, file=answer, flush=True)
