"""Ranks of which one computes longer than the others in each step: straggler.py hvd|ddp|gloo RANK MILLISECONDS FILE, until FILE is there."""
import os
import sys
import time

import torch

mode, late, pause_s, file = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000, sys.argv[4]
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
if mode == "hvd":
    import muster.torch as hvd
    hvd.init()
    rank = hvd.rank()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def largest(value):
        return hvd.allreduce(value, op=hvd.Max)
else:
    import torch.distributed as dist
    if mode == "ddp":
        import muster.distributed  # noqa: F401, the backend muster
    dist.init_process_group("muster" if mode == "ddp" else "gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(model)

    def largest(value):
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value

step, ends = 0, False
while not ends:
    optimizer.zero_grad()
    loss = model(torch.randn(16, 64)).square().mean()
    if rank == late:
        time.sleep(pause_s)
    loss.backward()
    optimizer.step()
    step += 1
    if step % 10 == 0:
        ends = float(largest(torch.tensor(1.0 if os.path.exists(file) else 0.0))) > 0
if mode != "hvd":
    dist.destroy_process_group()
