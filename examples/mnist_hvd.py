"""Trains on Fashion-MNIST with Horovod's calls: muster run -n 2 -- python3 mnist_hvd.py"""

import argparse

import fashion_mnist
import torch
import torch.nn.functional as F

import muster.torch as hvd

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
parser.add_argument("--samples", type=int, default=60000)
args = parser.parse_args()

hvd.init()
torch.manual_seed(1)
torch.set_num_threads(1)

images, labels = map(torch.from_numpy, fashion_mnist.load(args.samples))
train = torch.utils.data.TensorDataset(images, labels)
sampler = torch.utils.data.distributed.DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(train, args.batch_size, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    images, labels = map(torch.from_numpy, fashion_mnist.load(10000, train=False))
    mine = slice(hvd.rank(), None, hvd.size())
    with torch.no_grad():
        right = (model(images[mine]).argmax(1) == labels[mine]).float().sum()
    accuracy = hvd.allreduce(right, name="right", op=hvd.Sum) / len(labels)
    if hvd.rank() == 0:
        print(f"epoch {epoch}: accuracy {accuracy:.3f} of the test images, {hvd.size()} ranks", flush=True)
