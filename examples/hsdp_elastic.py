"""Trains replicas of a model that is sharded over ranks (fully_shard, HSDP), and goes on in place when ranks are lost or come. Needs torch 2.15 or later:

muster run -n 4 --slots-per-node 5 --min-np 2 --spares 1 --warm-spares -- python3 hsdp_elastic.py
"""

import hashlib
import inspect
import os
import signal
import sys

import torch

try:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    can_run = "preserve_rank_order" in inspect.signature(DeviceMesh).parameters  # earlier ones sort the ranks of each replica
except (ImportError, ValueError):  # ValueError: torch 1.13 on Python 3.11
    can_run = False
if not can_run:
    print(f"torch {torch.__version__} has no DeviceMesh that keeps the order of its ranks; this example needs 2.15 or later")
    sys.exit(77)

import torch.distributed as dist

import muster.distributed  # the backend "muster"
from muster import elastic

SHARDS = 2  # of a replica
STEPS = int(os.environ.get("STEPS", "20"))
held = -1  # the number of the shard whose commits these are
commits = {}  # the latest two: a rank may have committed a step that another was lost in


def match():
    """The step to go on from, and for each replica its ranks, in the order of the shards. Ranks keep their shards; the places that are left go to newcomers and to
    ranks whose replica is broken. Ranks without a place wait for newcomers, with whom they make another replica."""
    theirs = [None] * dist.get_world_size()
    dist.all_gather_object(theirs, (held, list(commits)))
    replicas = len(theirs) // SHARDS

    def holders(step):
        return [[rank for rank, (shard, steps) in enumerate(theirs) if shard == wanted and step in steps] for wanted in range(SHARDS)]

    known = {step for _, steps in theirs for step in steps}
    whole = [step for step in known if all(holders(step))]
    if any(known) and not whole:
        sys.exit("the last rank that held a shard is lost; begin again from a checkpoint")
    step = max(whole, default=0)
    columns = [ranks[:replicas] for ranks in holders(step)]
    free = [rank for rank in range(len(theirs)) if not any(rank in ranks for ranks in columns)]
    return step, [[ranks[at] if at < len(ranks) else free.pop(0) for ranks in columns] for at in range(replicas)]


def make(mesh):
    """The model as it begins, the same for all replicas, and its optimizer."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for one in model.parameters():
        optimizer.state[one] = {"step": torch.zeros(()), "exp_avg": torch.zeros_like(one), "exp_avg_sq": torch.zeros_like(one)}
    return model, optimizer


def shard_of(model, optimizer):
    """This rank's part of the parameters and moments: memory to read and write."""
    tensors = [tensor for one in model.parameters() for tensor in (one.detach(), *optimizer.state[one].values())]
    return [tensor.to_local() if isinstance(tensor, DTensor) else tensor for tensor in tensors]


def batch(step, position):
    random = torch.Generator().manual_seed(1000 * step + position)
    return torch.randn(32, 64, generator=random), torch.randint(16, (32,), generator=random)


def first_of_all(value):
    box = [value]
    dist.broadcast_object_list(box)
    return box[0]


def train():
    global held, commits
    step, replicas = match()
    mesh = DeviceMesh("cpu", replicas, mesh_dim_names=("replica", "shard"), preserve_rank_order=True)
    place, generation = mesh.get_coordinate(), os.environ.get("MUSTER_GENERATION", "0")
    print(f"generation {generation}: pid {os.getpid()} goes on at step {step}, (replica, shard) {place}", flush=True)
    if place:
        replica, shard = place
        model, optimizer = make(mesh)
        parts = shard_of(model, optimizer)
        for part, value in zip(parts, commits.get(step, []) if shard == held else []):
            part.copy_(value)
        for part in parts if step else []:  # the first replica has what others lack
            dist.broadcast(part, src=replicas[0][shard], group=mesh.get_group("replica"))
        held, commits = shard, {step: [part.clone() for part in parts]}
    hosts = elastic.ObjectState(first_of_all, dist.get_rank)
    while step < STEPS:
        if generation == "0" and f"{dist.get_rank()}:{step}" in os.environ.get("KILL", "").split(","):  # RANK:STEP,RANK:STEP, to see it work
            os.kill(os.getpid(), signal.SIGKILL)
        if place:
            images, labels = batch(step, SHARDS * replica + shard)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            commits = {step: commits[step], step + 1: [part.clone() for part in parts]}
        step += 1
        hosts.check_host_updates()  # newcomers come in here
    if place:
        digest = hashlib.sha1(b"".join(part.numpy().tobytes() for part in parts)).hexdigest()
        print(f"pid {os.getpid()} ends with replica {replica}, shard {shard}: {digest}", flush=True)


elastic.announce()
torch.set_num_threads(1)
muster.distributed.reform()
while True:
    try:
        train()
        break
    except (RuntimeError, elastic.HostsUpdatedInterrupt) as error:
        muster.distributed.reform(error, has_state=bool(commits))
dist.destroy_process_group()
