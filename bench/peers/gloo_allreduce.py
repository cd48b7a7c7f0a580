"""A peer of `muster-bench collectives`: Gloo's allreduce, through torch.distributed.

gloo_allreduce.py FOLDER NAME RANK SIZE: speaks as mpi_allreduce.c does. torch's all_reduce works in place; out of place the copy
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
sets, counts, inputs, outputs, places = 0, [], [], [], {}


def values(which, count, seed, r):
    i = torch.arange(count, dtype=torch.int64)
    return ((i * 7 + which * 3 + seed * 5 + r * 11) & 63).to(torch.float32)


def run(seed, in_place):
    for k, (source, result) in enumerate(zip(inputs, outputs)):
        source.copy_(values(k, source.numel(), seed, rank))
        result.copy_(source) if in_place else result.fill_(-1)
    dist.barrier()
    begin = time.perf_counter()
    for source, result in zip(inputs, outputs):
        if not in_place:
            result.copy_(source)
        dist.all_reduce(result)
    end = time.perf_counter()
    wrong = 0
    for k, result in enumerate(outputs):
        expected = sum(values(k, result.numel(), seed, r) for r in range(size))
        wrong += int((result != expected).sum())
    return (end - begin) * 1e6 / sets, wrong


with open(os.path.join(folder, f"{name}.{rank}")) as orders, open(os.path.join(folder, name + ".out"), "w") as answer:
    for line in iter(orders.readline, ""):
        words = line.split()
        if words[0] == "end":
            break
        if words[0] == "version":
            if rank == 0:
                print(0, "Gloo (torch " + torch.__version__ + ")", file=answer, flush=True)
        elif words[0] == "tensors":
            sets, counts = int(words[1]), [int(w) // 4 for w in words[3:]]
            inputs = [torch.zeros(c) for _ in range(sets) for c in counts]
            outputs = [torch.zeros(c) for _ in range(sets) for c in counts]
            print(rank, 0, 0, file=answer, flush=True)
        elif words[0] == "run":
            micros, wrong = run(int(words[1]), words[2] == "1")
            print(rank, f"{micros:.4f}", wrong, file=answer, flush=True)
