#!/usr/bin/python3
"""The published 1-32 GPU table's MNIST run as it was made, in PyTorch: its network, batch and rate, and its input pipeline, a
DataLoader with one worker that decodes and normalises each image on its own. Ranks average gradients and each step's loss by gloo.
A worker inherits the cores that its rank is bound to. Prints muster-metric lines.

With --core-share S a core is imitated by a quota of processor time, which goes before all other work: a rank bound to a core shares S of
one with its worker, and where it is not bound, each of the two has S of one. --cores own gives each its own at every number of ranks. Needs a
cgroup v1 "cpu" hierarchy that may be written. --loader fast takes whole batches out of memory instead, in the rank.

--gpu-ms X imitates the GPUs of one node: a step ends X ms after the last rank has begun it, and ranks wait for that by spinning, as they do for
CUDA. Nothing is trained then."""

import argparse
import os
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", required=True, help="dataset of muster-stage convert")
parser.add_argument("--images", type=int, default=0, help="train on the first N only; 0: all")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--loader", choices=("published", "fast"), default="published")
parser.add_argument("--core-share", type=float, default=0)
parser.add_argument("--cores", choices=("published", "own"), default="published")
parser.add_argument("--gpu-ms", type=float, default=0)
args = parser.parse_args()

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded

import h5py  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(1)
rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
shares_core = args.cores == "published" and ranks <= 2  # as Open MPI binds by default
steps_before = 5  # a worker is ahead of its rank by two batches when the clock begins: images_per_s leaves these steps out


class Share:
    """A cgroup whose processes get a share of one core."""

    period_us = 5000  # so short that ranks do not wait long for each other's turns
    weight = 65536  # against 1024 of what else is running: a core is there whenever it is wanted

    def __init__(self, name):
        self.path = f"/sys/fs/cgroup/cpu/muster-share-{os.getpid()}-{name}"
        os.mkdir(self.path)
        self.write("cpu.cfs_period_us", self.period_us)
        self.write("cpu.cfs_quota_us", max(1000, round(args.core_share * self.period_us)))
        self.write("cpu.shares", self.weight)

    def write(self, file, value):
        with open(os.path.join(self.path, file), "w") as to:
            to.write(str(value))

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    @staticmethod
    def leave():
        with open("/sys/fs/cgroup/cpu/cgroup.procs", "w") as to:
            to.write(str(os.getpid()))

    def remove(self):
        for _ in range(100):  # its last process may be ending
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.01)


class Images(torch.utils.data.Dataset):
    """Each image is read, made a float and normalised when it is asked for, as torchvision's transforms do."""

    def __init__(self, split, most=0):
        with h5py.File(args.data, "r") as file:
            self.images = torch.from_numpy(file[split]["images"][...])
            self.labels = torch.from_numpy(file[split]["labels"][...]).long()
        if most:
            self.images, self.labels = self.images[:most], self.labels[:most]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].view(1, 28, 28).permute(1, 2, 0).contiguous()
        image = image.permute(2, 0, 1).contiguous().to(torch.float32).div(255)
        mean, deviation = torch.as_tensor((0.1307,)), torch.as_tensor((0.3081,))
        return image.sub_(mean.view(-1, 1, 1)).div_(deviation.view(-1, 1, 1)), self.labels[index]


def fast_batches(data, sampler):
    """All images are made floats once; a batch is one selection."""
    if not hasattr(data, "ready"):
        data.ready = data.images.view(-1, 1, 28, 28).to(torch.float32).div_(255).sub_(0.1307).div_(0.3081)
    order = torch.tensor(list(sampler))
    for pick in order.split(args.batch):
        yield data.ready.index_select(0, pick), data.labels.index_select(0, pick)


class Net(nn.Module):
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
        x = x.view(-1, 320)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def average(tensor):
    if ranks > 1:
        dist.all_reduce(tensor)
    return tensor / ranks


def train_step(batch, net, gradients_of, optimiser):
    optimiser.zero_grad()
    loss = F.nll_loss(net(batch[0]), batch[1])
    loss.backward()
    fused = average(torch.cat([p.grad.view(-1) for p in gradients_of]))
    for p, g in zip(gradients_of, fused.split([p.numel() for p in gradients_of])):
        p.grad.copy_(g.view_as(p.grad))
    optimiser.step()
    average(loss.detach()).item()


class Gpus:
    """When each rank began its step, in memory that all ranks have: what one GPU computes and sends to the others takes no processor."""

    def __init__(self):
        path = f"/dev/shm/muster-gpus-{os.environ.get('MASTER_PORT', os.getpid())}"
        if rank == 0:
            with open(path, "wb") as file:
                file.write(bytes(8 * 3 * ranks))
        if ranks > 1:
            dist.barrier()
        shared = numpy.memmap(path, dtype=numpy.float64, shape=(3, ranks))
        self.begun, self.steps, self.step = shared[:2], shared[2], 0
        if ranks > 1:
            dist.barrier()
        if rank == 0:
            os.unlink(path)

    def run_step(self):
        self.step += 1
        begun = self.begun[self.step % 2]  # nobody is two steps ahead
        begun[rank] = time.perf_counter()
        self.steps[rank] = self.step
        while self.steps.min() < self.step:
            pass
        end = begun.max() + args.gpu_ms / 1e3
        while time.perf_counter() < end:
            pass


def main():
    torch.manual_seed(args.seed)
    if ranks > 1:
        dist.init_process_group("gloo")
    gpus = Gpus() if args.gpu_ms else None
    data = Images("train", args.images)
    sampler = torch.utils.data.distributed.DistributedSampler(data, ranks, rank, seed=args.seed)
    shares = [Share("rank"), Share("worker")] if args.core_share else []
    own = shares[0] if shares else None
    workers = shares[0 if shares_core else 1] if shares else None
    loader = None
    if args.loader == "published":
        loader = torch.utils.data.DataLoader(
            data,
            batch_size=args.batch,
            sampler=sampler,
            num_workers=1,
            persistent_workers=True,
            worker_init_fn=(lambda _: workers.enter()) if workers else None,
        )

    def batches_of_epoch():
        return iter(loader) if loader else fast_batches(data, sampler)

    net = Net()
    gradients_of = list(net.parameters())
    optimiser = torch.optim.SGD(gradients_of, lr=args.lr * ranks, momentum=args.momentum)
    batches = batches_of_epoch()  # starts the worker, which is no part of the clock: the published table's may have held it
    if not loader:
        list(fast_batches(data, sampler))
    if ranks > 1:
        dist.barrier()
    if own:
        own.enter()
    begin, waited, steps = time.perf_counter(), 0.0, 0
    steady = begin
    for epoch in range(args.epochs):
        if epoch:
            sampler.set_epoch(epoch)
            batches = batches_of_epoch()
        while True:
            before = time.perf_counter()
            batch = next(batches, None)
            waited += time.perf_counter() - before
            if batch is None:
                break
            if args.gpu_ms:
                gpus.run_step()
            else:
                train_step(batch, net, gradients_of, optimiser)
            steps += 1
            if steps == steps_before:
                steady = time.perf_counter()
    if ranks > 1:
        dist.barrier()
    end = time.perf_counter()
    train = end - begin
    if shares:
        Share.leave()
        del batches, loader
        for each in shares:
            each.remove()
    if rank == 0:
        print(f"muster-metric: train_s {train} s", flush=True)
        if steps > steps_before:
            late = len(data) * args.epochs * (1 - steps_before / steps)
            print(f"muster-metric: images_per_s {late / (end - steady)} images/s", flush=True)
        print(f"muster-metric: step_ms {1e3 * train / steps} ms", flush=True)
        print(f"muster-metric: loader_wait_s {waited} s", flush=True)


main()
