#!/usr/bin/python3
"""The workload of the published 1-32 GPU table: its MNIST or CIFAR-10 network, trained data-parallel by PyTorch.

    muster run -- python3 published_table.py --net mnist --data mnist.h5 --epochs 32
    torchrun --nproc_per_node 4 published_table.py --net cifar10 --data cifar10.h5 --api ddp --backend nccl

Batch 64 a rank, SGD with rate 0.01 x ranks and momentum 0.5, training and test in each epoch, as that table was made. The same lines run on CPUs, one thread a
rank, and on GPUs. Batches come from muster.data.Loader; without --data every rank makes images of its own. Rank 0 prints the metrics that `muster-bench scale`
reads, and every rank its compute_s."""

import argparse
import os
import sys
import time

began = time.time()
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--net", choices=("mnist", "cifar10"), default="mnist")
parser.add_argument("--api", choices=("hvd", "ddp"), default="hvd", help="muster.torch, with Horovod's calls, or DistributedDataParallel")
parser.add_argument("--backend", choices=("muster", "gloo", "nccl"), default="muster", help="gloo and nccl are for --api ddp")
parser.add_argument("--data", help="a dataset of muster stage convert with the splits train and test; without: generated images")
parser.add_argument("--images", default="", metavar="TRAIN,TEST", help="how many images are generated, or taken of --data")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch", type=int, default=64, help="images a rank and step")
parser.add_argument("--global-batch", type=int, help="images of all ranks a step instead; the rate is not multiplied by the ranks then")
parser.add_argument("--lr", type=float, default=0.01, help="learning rate of one rank")
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--average-loss", action="store_true", help="ranks average the loss in every step and wait for it, as the published runs did")
parser.add_argument("--target-accuracy", type=float, default=0, help="0 to 1: end after the epoch whose test reaches it")
parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
parser.add_argument("--threads", type=int, default=1, help="of a rank, on CPUs")
args = parser.parse_args()
if args.api == "hvd" and args.backend != "muster":
    parser.error(f"--backend {args.backend} is for --api ddp; muster.torch reduces by muster")

os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))  # before torch is loaded

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402


class MnistNet(nn.Module):
    """21,840 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(F.dropout(x, training=self.training))


def cifar_net():
    """AlexNet for images of 32 x 32: 23,272,266 parameters."""
    layers, inputs = [], 3
    for outputs, stride, pooled in ((64, 2, True), (192, 1, True), (384, 1, False), (256, 1, False), (256, 1, True)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1), nn.ReLU(inplace=True)] + [nn.MaxPool2d(2)] * pooled
        inputs = outputs
    dense = [nn.Dropout(), nn.Linear(1024, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.Flatten(), *dense, nn.Linear(4096, 10))


SHAPE = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32)}[args.net]
NORMAL = {"mnist": (0.1307, 0.3081), "cifar10": (0.5, 0.5)}[args.net]
SIZES = {"mnist": (60_000, 10_000), "cifar10": (50_000, 10_000)}[args.net]


class Horovod:
    """The ranks by muster.torch."""

    def __init__(self):
        import muster
        import muster.torch as hvd

        hvd.init()
        self.calls, self.rank, self.size, self.backend = hvd, hvd.rank(), hvd.size(), "muster's " + muster.backend()[0]

    def wrap(self, model, optimizer):
        self.calls.broadcast_parameters(model.state_dict(), root_rank=0)
        return model, self.calls.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def step(self, optimizer):
        """Returns when the gradients had come."""
        if not hasattr(optimizer, "synchronize"):  # of one rank it may be the plain one
            optimizer.step()
            return time.perf_counter()
        optimizer.synchronize()
        come = time.perf_counter()
        with optimizer.skip_synchronize():
            optimizer.step()
        return come

    def sum(self, values):
        return self.calls.allreduce(values, op=self.calls.Sum)

    def end(self):
        self.calls.shutdown()


class Distributed:
    """The ranks by torch.distributed and DistributedDataParallel."""

    def __init__(self):
        import torch.distributed as dist

        if args.backend == "muster":
            import muster.distributed  # noqa: F401  registers it; torch from 2.5 on does so by itself
        for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0")):
            os.environ.setdefault(name, value)  # of a program that nobody launched
        dist.init_process_group(args.backend)
        self.calls, self.rank, self.size, self.backend = dist, dist.get_rank(), dist.get_world_size(), args.backend

    def wrap(self, model, optimizer):
        return nn.parallel.DistributedDataParallel(model), optimizer

    def step(self, optimizer):
        come = time.perf_counter()  # DistributedDataParallel waits at the end of backward()
        optimizer.step()
        return come

    def sum(self, values):
        self.calls.all_reduce(values)
        return values

    def end(self):
        self.calls.destroy_process_group()


class Generated:
    """A split of images that nobody took: a pattern for each class, under noise. An iteration is an epoch."""

    def __init__(self, count, seed, train):
        patterns = F.interpolate(torch.rand(10, SHAPE[0], 4, 4, generator=torch.Generator().manual_seed(args.seed)), SHAPE[1:], mode="bilinear", align_corners=False)
        random = torch.Generator().manual_seed(seed)
        labels = torch.randint(0, 10, (count,), generator=random)
        images = (0.4 * patterns[labels] + 0.6 * torch.rand(count, *SHAPE, generator=random) - NORMAL[0]) / NORMAL[1]
        self.images, self.labels, self.train, self.epoch = images.to(device), labels.to(device), train, 0

    def __iter__(self):
        order = torch.arange(len(self.labels))
        if self.train:
            order = torch.randperm(len(order), generator=torch.Generator().manual_seed(args.seed + self.epoch))
            order = torch.cat([order, order[: -len(order) % ranks.size]])  # every rank as many
            self.epoch += 1
        for pick in order[ranks.rank :: ranks.size].split(batch if self.train else 1000):
            yield self.images[pick.to(device)], self.labels[pick.to(device)]


class First:
    """The batches of a loader until all ranks together have had so many images: the same ones in each epoch."""

    def __init__(self, loader, count):
        self.loader, self.count = loader, count

    def __iter__(self):
        left = self.count
        for batch in self.loader:
            yield batch
            left -= batch.global_count
            if left <= 0:
                return


def open_split(name, count, train):
    if not args.data:
        return Generated(count or SIZES[0 if train else 1], args.seed + train, train)
    from muster.data import Dataset, Loader

    data = Dataset(args.data, name)
    if data.shape != SHAPE:
        sys.exit(f"{args.data}: its images are {data.shape}, and --net {args.net} takes {SHAPE}; give another --data or --net")
    loader = Loader(
        data,
        batch_size=batch if train else 1000,
        shuffle=train,
        seed=args.seed,
        tail="pad" if train else "exact",
        rank=ranks.rank,
        size=ranks.size,
        normalize=NORMAL,
        device=None if device.type == "cpu" else device,
    )
    return First(loader, count) if count else loader


def metric(name, value, unit=""):
    print(f"muster-metric: {name} {value:.9g} {unit}".rstrip(), flush=True)


def now():
    """The time when the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def meet():
    """Waits until every rank is here, and says when that was."""
    ranks.sum(torch.zeros(1, device=device))
    return now()


class Epoch:
    """Trains and tests one, and holds its seconds: train, first (step), test; of the host's: input, waited (for gradients)."""

    def __init__(self):
        model.train()
        self.input = self.waited = 0.0
        self.loss = torch.zeros(1, device=device)
        begin = at = meet()
        for step, (images, labels) in enumerate(train):
            self.input += time.perf_counter() - at
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            come = ranks.step(optimizer)
            self.waited += max(0.0, come - last_gradient[0])
            if args.average_loss:
                self.loss = ranks.sum(loss.detach().reshape(1)) / ranks.size
                self.loss.item()
            if step == 0:
                self.first = now() - begin
            at = time.perf_counter()
        self.steps = step + 1
        self.train = meet() - begin
        model.eval()
        begin = now()
        sums = torch.zeros(3, device=device)  # of the loss, of hits, of images
        with torch.no_grad():
            for images, labels in test:
                if len(labels):
                    out = model(images)
                    sums[0] += F.cross_entropy(out, labels, reduction="sum")
                    sums[1] += (out.argmax(1) == labels).sum()
                    sums[2] += len(labels)
        loss, right, count = ranks.sum(sums).tolist()
        self.test = now() - begin
        self.loss, self.accuracy = loss / count, right / count


if args.device == "cuda" or (args.device == "auto" and torch.cuda.is_available()):
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % max(1, torch.cuda.device_count()))
    torch.cuda.set_device(device)
else:
    device = torch.device("cpu")
    torch.set_num_threads(args.threads)
ranks = Horovod() if args.api == "hvd" else Distributed()
batch = args.global_batch // ranks.size if args.global_batch else args.batch
rate = args.lr if args.global_batch else args.lr * ranks.size
torch.manual_seed(args.seed)
model = (MnistNet() if args.net == "mnist" else cifar_net()).to(device)
model, optimizer = ranks.wrap(model, torch.optim.SGD(model.parameters(), lr=rate, momentum=args.momentum))
last_gradient = [0.0]  # when the backward pass came to the first layer, whose gradient is the last
next(model.parameters()).register_hook(lambda gradient: last_gradient.__setitem__(0, time.perf_counter()))
counts = [int(word) for word in args.images.split(",")] if args.images else [0, 0]
train, test = open_split("train", counts[0], True), open_split("test", counts[-1], False)
torch.manual_seed(args.seed + 1 + ranks.rank)  # of dropout
meet()
startup = time.time() - began
epochs = []
while len(epochs) < args.epochs and not (args.target_accuracy and epochs and epochs[-1].accuracy >= args.target_accuracy):
    epochs.append(Epoch())
    if ranks.rank == 0:
        e = epochs[-1]
        print(f"epoch {len(epochs)}/{args.epochs}: {e.train:.3f} s ({e.steps} steps of {batch} on {ranks.size} ranks), test {e.test:.3f} s, loss {e.loss:.4f}, accuracy {e.accuracy:.2%}", flush=True)


def total(name):
    return sum(getattr(e, name) for e in epochs)


whole = total("train") + total("test")
if ranks.rank == 0:
    metric("train_s", total("train"), "s")
    later = sum(e.train - e.first for e in epochs)
    metric("images_per_s", sum(e.steps - 1 for e in epochs) * batch * ranks.size / later if later > 0 else 0, "images/s")
    metric("accuracy", epochs[-1].accuracy)
    metric("startup_s", startup, "s")
    metric("test_s", total("test"), "s")
    metric("first_step_s", total("first"), "s")
    if device.type == "cpu":  # of a GPU's work the host sees no parts
        metric("allreduce_wait_s", total("waited"), "s")
        metric("loader_wait_s", total("input"), "s")
    metric("first_epoch_s", epochs[0].train, "s")
    metric("epoch_s", sum(e.train for e in epochs[-5:]) / len(epochs[-5:]), "s")
    metric("steps", total("steps"))
    metric("published_s", whole, "s")
    metric("published_with_startup_s", startup + whole, "s")
    if args.target_accuracy and epochs[-1].accuracy >= args.target_accuracy:
        metric("time_to_accuracy_s", whole, "s")
        metric("epochs_to_accuracy", len(epochs))
if device.type == "cpu":
    metric("compute_s", total("train") - total("waited") - total("input"), "s")
if ranks.rank == 0:
    print(f"{args.net} with {sum(p.numel() for p in model.parameters())} parameters on {ranks.size} ranks by {args.api} over {ranks.backend}, {device.type}, torch {torch.__version__}", flush=True)
ranks.end()
if args.target_accuracy and epochs[-1].accuracy < args.target_accuracy:
    sys.exit(f"the accuracy {args.target_accuracy:.2%} was not reached in {args.epochs} epochs: {epochs[-1].accuracy:.2%}")
