"""Trains on Fashion-MNIST with DistributedDataParallel: muster run -n 2 -- python3 mnist_ddp.py. On torch before 2.5 it imports muster.distributed for the backend."""

import argparse

import fashion_mnist
import torch
import torch.distributed as dist
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="muster", help="muster, gloo or nccl")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
parser.add_argument("--samples", type=int, default=60000)
args = parser.parse_args()

if args.backend == "muster":
    import muster.distributed  # noqa: F401  registers the backend; torch from 2.5 on does so by itself

dist.init_process_group(args.backend)
torch.manual_seed(1)
torch.set_num_threads(1)

images, labels = map(torch.from_numpy, fashion_mnist.load(args.samples))
train = torch.utils.data.TensorDataset(images, labels)
sampler = torch.utils.data.distributed.DistributedSampler(train)
loader = torch.utils.data.DataLoader(train, args.batch_size, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * dist.get_world_size(), momentum=0.9)

for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    images, labels = map(torch.from_numpy, fashion_mnist.load(10000, train=False))
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    with torch.no_grad():
        right = (model.module(images[mine]).argmax(1) == labels[mine]).float().sum()
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: accuracy {right / len(labels):.3f} of the test images, {dist.get_world_size()} ranks", flush=True)
dist.destroy_process_group()
