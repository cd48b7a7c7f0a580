"""Trains for six steps with a value of each rank's own. FAULT=RANK:STEP: that rank is killed there, in the first generation."""

import os
import signal
import sys

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)

import muster.torch as hvd

hvd.init()
rank = hvd.rank()
victim, at = (int(one) for one in os.environ.get("FAULT", "-1:0").split(":"))
torch.manual_seed(1)
model = torch.nn.Linear(4, 4)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), named_parameters=model.named_parameters())


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} begins at step {state.step} with {state.own}", flush=True)
    while state.step < 6:
        if os.environ["MUSTER_GENERATION"] == "0" and (rank, state.step) == (victim, at):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.full((2, 4), 1.0 + state.step)).sum().backward()
        optimizer.step()
        state.step += 1
        state.own += rank
        state.commit()
    return state.own


own = train(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, own=0))
print(f"rank {hvd.rank()} ends with {own}, weights {model.weight.double().sum().item():.15f}", flush=True)
