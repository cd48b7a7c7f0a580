#!/usr/bin/python3
"""The networks of the published tables in PyTorch, data-parallel with DistributedDataParallel over gloo: what `muster-bench train` is measured against.

    muster run -n 2 -- python3 torch_training.py --net mnist --epochs 2
    python3 torch_training.py --net cifar10 --steps 20

Same layers, loss, optimiser, batch and rate as `muster-bench train`; images are random, lie in memory as normalised floats, and a batch is one index_select. One
thread a rank. Prints the epochs, the median time of a step after the first with its quartiles, and `muster-metric:` lines."""

import argparse
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(1)


class MnistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return self.fc2(F.dropout(x, training=self.training))


def cifar_net():
    relu, pool = lambda: nn.ReLU(inplace=True), lambda: nn.MaxPool2d(2)
    convolutions = [nn.Conv2d(3, 64, 3, stride=2, padding=1), relu(), pool(), nn.Conv2d(64, 192, 3, padding=1), relu(), pool()]
    for channels in ((192, 384), (384, 256), (256, 256)):
        convolutions += [nn.Conv2d(*channels, 3, padding=1), relu()]
    dense = [nn.Dropout(), nn.Linear(1024, 4096), relu(), nn.Dropout(), nn.Linear(4096, 4096), relu(), nn.Linear(4096, 10)]
    return nn.Sequential(*convolutions, pool(), nn.Flatten(), *dense)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--net", choices=("mnist", "cifar10"), default="mnist")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--steps", type=int, help="of an epoch; default: all images")
parser.add_argument("--batch", type=int, default=64)
args = parser.parse_args()

rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if ranks > 1:
    dist.init_process_group("gloo")
torch.manual_seed(42)
shape, count = ((1, 28, 28), 60_000) if args.net == "mnist" else ((3, 32, 32), 50_000)
if args.steps:
    count = min(count, args.steps * args.batch * ranks)
images, labels = torch.randn(count, *shape), torch.randint(0, 10, (count,))
net = MnistNet() if args.net == "mnist" else cifar_net()
parameters = sum(p.numel() for p in net.parameters())
model = nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
optimiser = torch.optim.SGD(model.parameters(), lr=0.01 * ranks, momentum=0.5)
for epoch in range(args.epochs):
    order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))[rank::ranks]
    times = []
    if ranks > 1:
        dist.barrier()
    begin = last = time.perf_counter()
    for first in range(0, len(order), args.batch):
        pick = order[first : first + args.batch]
        optimiser.zero_grad()
        F.cross_entropy(model(images.index_select(0, pick)), labels.index_select(0, pick)).backward()
        optimiser.step()
        now = time.perf_counter()
        times.append(now - last)
        last = now
    if ranks > 1:
        dist.barrier()
    train = time.perf_counter() - begin
    steps = sorted(times[1:]) or times
    quartiles = statistics.quantiles(steps, n=4) if len(steps) > 1 else steps * 3
    if rank == 0:
        print(
            f"{args.net}, {parameters} parameters, {ranks} ranks, epoch {epoch + 1}: {len(order)} images a rank, {train:.3f} s; a step "
            f"{1000 * quartiles[1]:.2f} ms ({1000 * quartiles[0]:.2f} to {1000 * quartiles[2]:.2f})",
            flush=True,
        )
        print(f"muster-metric: train_s {train} s\nmuster-metric: step_ms {1000 * quartiles[1]} ms", flush=True)
