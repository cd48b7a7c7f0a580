"""Trains on whatever ranks are left: muster run -n 4 --min-np 2 -- python3 elastic.py, and kill any of the ranks."""

import argparse
import os
import time

import torch

import muster.torch as hvd

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
parser.add_argument("--samples", type=int, default=20000)
parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step, to have time for a kill")
args = parser.parse_args()

hvd.init()
torch.manual_seed(1)
torch.set_num_threads(1)

inputs = torch.randn(args.samples, 16)
targets = inputs @ torch.randn(16, 1)
dataset = torch.utils.data.TensorDataset(inputs, targets)
sampler = hvd.elastic.ElasticSampler(dataset)
model = torch.nn.Linear(16, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters())


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} of {hvd.size()}, process {os.getpid()}: epoch {state.epoch}, step {state.step}", flush=True)
    while state.epoch < args.epochs:
        loader = torch.utils.data.DataLoader(dataset, args.batch_size, sampler=sampler)
        loss = None
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            sampler.record_batch(i, args.batch_size)
            state.step += 1
            state.commit()
            time.sleep(args.pause)
        if hvd.rank() == 0 and loss is not None:  # no batch is left where a rank was lost after the last one
            print(f"epoch {state.epoch}: loss {loss.item():.4f}, {hvd.size()} ranks", flush=True)
        state.epoch += 1
        sampler.set_epoch(state.epoch)
    return state.step


steps = train(hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, step=0))
weight = model.weight.detach().double().sum().item()
print(f"rank {hvd.rank()} of {hvd.size()}: {steps} steps, weights {weight:.12f}", flush=True)
