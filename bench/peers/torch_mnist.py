#!/usr/bin/python3
"""The benchmark's network in PyTorch: the peer that `muster-bench compare` measures against.

Same layers, loss, optimiser, batch, learning rate, normalisation and data as `muster-bench train` with one rank; PyTorch's own random numbers. The images are
normalised and held as one float tensor before the clock starts, and a batch is one index_select: the quickest input PyTorch can be given, much
quicker than a DataLoader. Prints one JSON object (schema muster.peer/1)."""

import argparse
import gzip
import json
import os
import statistics
import sys
import time

started = time.perf_counter()

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", required=True, help="dataset of muster-stage convert, or a folder with the four IDX files")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()

os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before torch is loaded

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(args.threads)


def read_idx(path):
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        content = file.read()
    rank = content[3]
    shape = np.frombuffer(content, ">i4", rank, 4)
    return np.frombuffer(content, np.uint8, -1, 4 + 4 * rank).reshape(shape)


def read_split(split):
    """Images and labels as NumPy arrays."""
    if os.path.isdir(args.data):
        prefix = {"train": "train", "test": "t10k"}[split]
        found = {}
        for kind in ("images-idx3", "labels-idx1"):
            name = os.path.join(args.data, f"{prefix}-{kind}-ubyte")
            found[kind] = read_idx(name if os.path.exists(name) else name + ".gz")
        return found["images-idx3"], found["labels-idx1"]
    import h5py

    with h5py.File(args.data, "r") as file:
        return file[split]["images"][...], file[split]["labels"][...]


def tensors(split):
    images, labels = read_split(split)
    images = torch.from_numpy(np.array(images, np.float32)).div_(255).sub_(0.1307).div_(0.3081)
    return images.view(-1, 1, 28, 28), torch.from_numpy(np.array(labels, np.int64))


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


torch.manual_seed(args.seed)
train_images, train_labels = tensors("train")
test_images, test_labels = tensors("test")
net = Net()
optimiser = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=args.momentum)
startup = time.perf_counter() - started
epochs = []
for epoch in range(args.epochs):
    order = torch.randperm(len(train_labels))
    net.train()
    steps = 0
    first_step = 0.0
    begin = time.perf_counter()
    for first in range(0, len(order), args.batch):
        pick = order[first : first + args.batch]
        images, labels = train_images.index_select(0, pick), train_labels.index_select(0, pick)
        optimiser.zero_grad()
        loss = F.nll_loss(net(images), labels)
        loss.backward()
        optimiser.step()
        steps += 1
        if steps == 1:
            first_step = time.perf_counter() - begin
    train = time.perf_counter() - begin
    begin = time.perf_counter()
    net.eval()
    correct, test_loss = 0, 0.0
    with torch.no_grad():
        for first in range(0, len(test_labels), 1000):
            out, labels = net(test_images[first : first + 1000]), test_labels[first : first + 1000]
            test_loss += F.nll_loss(out, labels, reduction="sum").item()
            correct += (out.argmax(1) == labels).sum().item()
    test = time.perf_counter() - begin
    epochs.append(
        {
            "epoch": epoch,
            "steps": steps,
            "train_s": train,
            "first_step_s": first_step,
            "images_per_s": (len(order) - min(args.batch, len(order))) / (train - first_step) if steps > 1 else 0.0,
            "test_s": test,
            "test_loss": test_loss / len(test_labels),
            "correct": correct,
            "test_images": len(test_labels),
        }
    )

json.dump(
    {
        "schema": "muster.peer/1",
        "name": "PyTorch",
        "version": torch.__version__,
        "details": f"Python {sys.version.split()[0]}, {torch.get_num_threads()} thread(s), "
        f"MKL-DNN {'on' if torch.backends.mkldnn.is_available() else 'off'}",
        "parameters": sum(p.numel() for p in net.parameters()),
        "startup_s": startup,
        "images_per_s": statistics.median(e["images_per_s"] for e in epochs),
        "epochs_done": epochs,
    },
    sys.stdout,
)
print()
