"""Trains with fully_shard, and goes on from memory after the loss of a rank or a node, each rank with the shards that it committed. Needs torch 2.7 or later:

muster run -n 2 --max-restarts 3 --keep-state node -- python3 fsdp_kept.py
"""

import hashlib
import os
import signal
import sys

import torch

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    on_cpus = hasattr(torch.cpu.Stream, "record_event")  # torch 2.6 calls it and does not have it, over gloo too
except (ImportError, ValueError):  # ValueError: torch 1.13 on Python 3.11
    on_cpus = False
if not on_cpus:
    print(f"torch {torch.__version__} has no fully_shard for the CPU; this example needs 2.7 or later")
    sys.exit(77)

import torch.distributed as dist

import muster
import muster.distributed  # the backend "muster"
from muster import kept

muster.init()
dist.init_process_group("muster")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16))
mesh = init_device_mesh("cpu", (size,))
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(shard, like):
    return DTensor.from_local(torch.from_numpy(shard), like.device_mesh, like.placements, shape=like.shape, stride=like.stride())


def commit(step):
    parameters = [local(one.detach()).numpy() for one in model.parameters()]
    moments = [{name: local(value).numpy() for name, value in optimizer.state[one].items()} for one in model.parameters()]
    kept.keep(step, (parameters, moments))


def restore(step):
    parameters, moments = kept.load(step)
    for one, values, states in zip(model.parameters(), parameters, moments):
        local(one.detach()).copy_(torch.from_numpy(values))
        optimizer.state[one] = {name: whole(value, one) if value.ndim else torch.tensor(value.item()) for name, value in states.items()}


def batch(step):
    random = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(32, 64, generator=random), torch.randint(16, (32,), generator=random)


step = kept.newest_common()
if step:
    restore(step)
print(f"rank {rank} of {size} begins at step {step}", flush=True)
victim, _, fatal = os.environ.get("KILL", ":").partition(":")  # RANK:STEP, to see it work
while step < int(os.environ.get("STEPS", "20")):
    if os.environ.get("MUSTER_GENERATION") == "0" and (str(rank), str(step)) == (victim, fatal):
        os.kill(os.getpid(), signal.SIGKILL)
    images, labels = batch(step)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    step += 1
    commit(step)
digest = hashlib.sha1(b"".join(local(one.detach()).numpy().tobytes() for one in model.parameters())).hexdigest()
print(f"rank {rank} ends with shards {digest}", flush=True)
dist.destroy_process_group()
