"""Trains for six steps with a value of each rank's own. FAULT="RANK:STEP …": these ranks, as they were at the start, are killed there, in the first generation;
RANK:STEP:GENERATION, in that one. GATE=FILE: not before FILE is there. AHEAD=RANK:STEP: this one has kept that step, which the others have not, and is killed."""

import os
import signal
import sys
import time

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)

import muster.torch as hvd

hvd.init()
rank = hvd.rank()
faults = [(one + ":0").split(":")[:3] for one in os.environ.get("FAULT", "").split()]
torch.manual_seed(1)
model = torch.nn.Linear(4, 4)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), named_parameters=model.named_parameters())


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} begins at step {state.step} with {state.own}", flush=True)
    while state.step < 6:
        if [str(rank), str(state.step), os.environ["MUSTER_GENERATION"]] in faults:
            while not os.path.exists(os.environ.get("GATE", "/")):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.full((2, 4), 1.0 + state.step)).sum().backward()
        optimizer.step()
        state.step += 1
        state.own += rank
        ahead, _, step = os.environ.get("AHEAD", ":").partition(":")
        if str(state.step) == step and os.environ["MUSTER_GENERATION"] == "0":
            if str(rank) == ahead:
                state.save()
                os.kill(os.getpid(), signal.SIGKILL)
            hvd.barrier()  # fails
        state.commit()
    return state.own


own = train(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, own=0))
print(f"rank {hvd.rank()} ends with {own}, weights {model.weight.double().sum().item():.15f}", flush=True)
