"""Trains by DistributedDataParallel over the backend "muster", and goes on without the rank that is killed in step 3: by muster.distributed.reform, or elastic.run."""

import datetime
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import muster.distributed
import muster.torch as hvd
from muster import elastic

how = sys.argv[1]  # "reform" or "run"
elastic.announce()
timeout = datetime.timedelta(seconds=77)
dist.init_process_group("muster", timeout=timeout) if how == "reform" else muster.distributed.reform(timeout=timeout)
module = torch.nn.Linear(1, 1, bias=False)
member, step = int(os.environ["MUSTER_MEMBERS"].split(",")[dist.get_rank()]), 0


def train(model):
    """The gradient of a rank is its member's number + 1: what comes out is their mean."""
    model.zero_grad()
    model(torch.full((1, 1), member + 1.0)).sum().backward()
    members, mean = [int(number) for number in os.environ["MUSTER_MEMBERS"].split(",")], module.weight.grad.item()
    assert abs(mean - sum(members) / len(members) - 1) < 1e-6, (mean, members)


def lose_a_rank():
    if step == 3 and member == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def run(state):
    global step
    model = DistributedDataParallel(module)
    while state.step < 6 or dist.get_world_size() < int(os.environ.get("UNTIL", "0")):
        step = state.step
        lose_a_rank()
        train(model)
        state.step += 1
        state.commit()


if how == "run":
    state = hvd.elastic.TorchState(model=module, step=0)
    run(state)
    step = state.step
model, former = DistributedDataParallel(module), None
while step < 6:
    try:
        lose_a_rank()
        if step == 3 and former is None and member == 1:
            dist.all_reduce(torch.ones(1))  # the others hear of the loss in their backward pass, which makes a RuntimeError of it
        train(model)
        step += 1
    except RuntimeError as error:
        muster.distributed.reform(error)
        former, model = model, DistributedDataParallel(module)
        kept = [step]
        dist.broadcast_object_list(kept)
        step = kept[0]
        total = torch.ones(1)
        dist.all_reduce(total)
        assert total == dist.get_world_size() == int(os.environ["WORLD_SIZE"]) and dist.get_rank() == int(os.environ["RANK"])
        with torch.no_grad():
            assert former(torch.ones(1, 1)) == module.weight
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
assert dist.distributed_c10d._get_default_group()._timeout == 77
print(f"member {member} ends: rank {dist.get_rank()} of {dist.get_world_size()}, total {step}", flush=True)
dist.destroy_process_group()
