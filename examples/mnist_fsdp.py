"""Trains on Fashion-MNIST with parameters divided over the ranks (FSDP): muster run -n 2 -- python3 mnist_fsdp.py. Needs torch 2.7 or later."""

import argparse
import sys

import fashion_mnist
import torch
import torch.distributed as dist
import torch.nn.functional as F

try:
    from torch.distributed.fsdp import fully_shard

    on_cpus = hasattr(torch.cpu.Stream, "record_event")  # torch 2.6 calls it and does not have it, over gloo too
except (ImportError, ValueError):  # ValueError: torch 1.13 on Python 3.11
    on_cpus = False
if not on_cpus:
    print(f"torch {torch.__version__} has no fully_shard for the CPU; this example needs 2.7 or later")
    sys.exit(77)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--backend", default="muster", help="muster, gloo or nccl")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
parser.add_argument("--samples", type=int, default=60000)
args = parser.parse_args()

dist.init_process_group(args.backend)
torch.manual_seed(1)  # the same parameters on all ranks, before they are divided
torch.set_num_threads(1)

images, labels = map(torch.from_numpy, fashion_mnist.load(args.samples))
train = torch.utils.data.TensorDataset(images, labels)
sampler = torch.utils.data.distributed.DistributedSampler(train)
loader = torch.utils.data.DataLoader(train, args.batch_size, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
for layer in (model[0], model[2]):
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
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
        right = (model(images[mine]).argmax(1) == labels[mine]).float().sum()
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: accuracy {right / len(labels):.3f} of the test images, {dist.get_world_size()} ranks", flush=True)
dist.destroy_process_group()
