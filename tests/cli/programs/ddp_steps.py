"""Trains by DistributedDataParallel over the backend "muster", and goes on by muster.distributed.reform without the rank that is killed in step 3."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import muster.distributed
from muster import elastic

how = sys.argv[1]  # where the rank is lost: in a "step", whose backward pass fails, or in a "collective"
elastic.announce()
muster.distributed.reform() if how == "step" else dist.init_process_group("muster")
module = torch.nn.Linear(1, 1, bias=False)
member, step = dist.get_rank(), 0


def train(model):
    """The gradient of a rank is its member's number + 1: what comes out is their mean."""
    model.zero_grad()
    model(torch.full((1, 1), member + 1.0)).sum().backward()
    return module.weight.grad.item()


model, former = DistributedDataParallel(module), None
while step < 6:
    try:
        if step == 3 and former is None and member == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 3 and former is None and how == "collective":
            dist.all_reduce(torch.ones(1))
        members, mean = [int(number) for number in os.environ["MUSTER_MEMBERS"].split(",")], train(model)
        assert abs(mean - sum(members) / len(members) - 1) < 1e-6, (mean, members)
        step += 1
    except RuntimeError as error:
        muster.distributed.reform(error)
        former, model = model, DistributedDataParallel(module)
        kept = [step]
        dist.broadcast_object_list(kept)
        step = kept[0]
        total = torch.ones(1)
        dist.all_reduce(total)
        assert total == dist.get_world_size() == 2 and dist.get_rank() == int(os.environ["RANK"])
        try:
            train(former)
            raise AssertionError("a DistributedDataParallel object of the former world took a step")
        except RuntimeError as refused:
            print(f"refused: {refused}", flush=True)
            try:
                muster.distributed.reform(refused)
                raise AssertionError("that is no failure of a collective")
            except RuntimeError as same:
                assert same is refused
print(f"member {member} ends: rank {dist.get_rank()} of {dist.get_world_size()}, total {step}", flush=True)
dist.destroy_process_group()
