"""Trains over the jobs of a chain, on each sample exactly once an epoch: muster submit --chain 3 --time 1h … -- python3 resume.py

Before the job's time is up muster sends SIGUSR1: the ranks finish their step, rank 0 saves, and all end with the code 75. The next job goes on from there,
also with another number of ranks. If a job is lost, the next one goes on from the last checkpoint of --every.
"""

import argparse
import itertools
import os
import signal
import time

import torch

import muster.torch as hvd
from muster.checkpoint import Checkpoint, exit_saved
from muster.data import Sampler

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--folder", default="checkpoints", help="where checkpoints are kept; all jobs must see it")
parser.add_argument("--every", type=int, default=100, help="steps from one checkpoint to the next")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--samples", type=int, default=10000)
parser.add_argument("--batch-size", type=int, default=16, help="of each rank")
parser.add_argument("--pause", type=float, default=0, help="seconds that a step takes longer")
args = parser.parse_args()

asked = []
signal.signal(signal.SIGUSR1, lambda number, _: asked.append(number))
hvd.init()
torch.manual_seed(1)
inputs = torch.randn(args.samples, 8)
targets = inputs.sum(1, keepdim=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), op=hvd.Sum)
sampler = Sampler(args.samples, rank=hvd.rank, size=hvd.size, seed=1)
trained = torch.zeros(args.samples, dtype=torch.int32)  # by this rank in this job: how often on each sample
before = torch.zeros_like(trained)  # by all ranks in all jobs before
step = 0

checkpoint = Checkpoint(args.folder)
found = hvd.broadcast_object(checkpoint.load() if hvd.rank() == 0 else None, root_rank=0)
if found:
    step, state = found
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    sampler.load_state_dict(state["sampler"])
    before = state["trained"]
if hvd.rank() == 0:
    print(f"life {os.environ.get('MUSTER_LIFE', '0')}: {hvd.size()} ranks begin at step {step}", flush=True)


def save():
    """Rank 0's sampler knows where all stand, since all are in the same step."""
    total = before + hvd.allreduce(trained, name="trained", op=hvd.Sum)
    if hvd.rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "sampler": sampler.state_dict(), "trained": total}
        checkpoint.save(step, state)
    hvd.barrier()
    return total


loss = torch.zeros(())
while sampler.next_pass()[0] < args.epochs:
    epoch, had = sampler.next_pass()
    numbers = iter(sampler)
    left = args.samples - had
    while left > 0:
        batch = list(itertools.islice(numbers, args.batch_size))  # of the last one some ranks have fewer, or none
        together = min(left, args.batch_size * hvd.size())
        optimizer.zero_grad()
        loss = (model(inputs[batch]) - targets[batch]).square().sum() / together
        loss.backward()
        optimizer.step()
        trained[batch] += 1
        left -= together
        step += 1
        time.sleep(args.pause)
        # The signal need not reach all ranks in the same step: they agree.
        if hvd.allreduce(torch.tensor([len(asked)]), name="asked", op=hvd.Max).item():
            save()
            exit_saved()
        if step % args.every == 0:
            save()
    next(numbers, None)  # the end of the pass
    loss = hvd.allreduce(loss.detach(), name="loss", op=hvd.Sum)
    if hvd.rank() == 0:
        print(f"muster-metric: loss {loss:.6f}", flush=True)

assert (save() == args.epochs).all(), "a sample was missed, or came twice"
if hvd.rank() == 0:
    print(f"all {args.samples} samples {args.epochs} times in {step} steps", flush=True)
