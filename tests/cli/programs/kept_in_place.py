"""Trains on samples that are dealt out to whatever ranks there are, with a TorchState. FAULTS="kill:2:5 hold:0:7": what a member does before a step, once;
it is killed no sooner than $GATE is there, and one that holds writes $GATE.7.held and waits for $GATE.7. At the end all have counted each sample once, but for those
that are dealt twice where they do not go round."""

import hashlib
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
torch.set_num_threads(1)
torch.manual_seed(1)
samples = 60
inputs = torch.randn(samples, 4)
sampler = hvd.elastic.ElasticSampler(inputs)
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), named_parameters=model.named_parameters())
member = int(os.environ["MUSTER_MEMBERS"].split(",")[hvd.rank()])
faults = {tuple(one.split(":")[1:]): one.split(":")[0] for one in os.environ.get("FAULTS", "").split()}
gate = os.environ.get("GATE", "/")


def digest(state):
    tensors = [model.weight.detach(), model.bias.detach(), *(one["momentum_buffer"] for one in optimizer.state.values() if "momentum_buffer" in one), state.seen]
    return hashlib.sha1(b"".join(one.numpy().tobytes() for one in tensors)).hexdigest()[:12]


def fail(what, step):
    file = f"{gate}.{step}" if what == "hold" else gate
    if what == "hold":
        open(f"{file}.held", "w").close()
    while not os.path.exists(file):
        time.sleep(0.01)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def train(state):
    everybody = hvd.allgather_object((state.step, digest(state)))
    assert everybody == everybody[:1] * hvd.size(), everybody
    print(f"member {member}: rank {hvd.rank()} of {hvd.size()} in generation {os.environ['MUSTER_GENERATION']} begins at step {state.step} with {digest(state)}", flush=True)
    for index in sampler:
        fault = faults.pop((str(member), str(state.step)), None)
        if fault:
            fail(fault, state.step)
        optimizer.zero_grad()
        model(inputs[index]).square().sum().backward()
        optimizer.step()
        mine = torch.zeros(samples)
        mine[index] += 1
        state.seen += hvd.allreduce(mine, name="seen", op=hvd.Sum)
        sampler.record_batch(0, 1)
        state.step += 1
        if hvd.rank() == 0:
            print(f"step {state.step} made {digest(state)}", flush=True)
        state.commit()
    return state


state = train(hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, step=0, seen=torch.zeros(samples)))
twice = int(state.seen.sum()) - samples
print(f"member {member} ends: rank {hvd.rank()} of {hvd.size()}, {state.step} steps, missed {int((state.seen == 0).sum())}, twice {twice}, {digest(state)}", flush=True)
