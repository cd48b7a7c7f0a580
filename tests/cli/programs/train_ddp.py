"""The loop of a DDP tutorial, written for torchrun: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as they stand."""
import os
import socket

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size, local_rank = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimiser.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimiser.step()
weights = [torch.zeros(4) for _ in range(size)]
dist.all_gather(weights, model.module.weight.detach()[0])
assert all(torch.equal(w, weights[0]) for w in weights)
print(f"rank {rank} of {size}, local rank {local_rank} on {socket.gethostname()}", flush=True)
dist.barrier()  # the store lives in rank 0: nobody goes before all have done
dist.destroy_process_group()
