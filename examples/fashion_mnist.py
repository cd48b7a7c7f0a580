"""Reads Fashion-MNIST's four idx files (Debian: dataset-fashion-mnist), or makes images that can be told apart where there are none."""

import gzip
import os

import numpy as np

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def _read(name, offset):
    with gzip.open(os.path.join(FOLDER, name)) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def _made(count, seed):
    """A pattern for each of ten classes, under noise."""
    patterns = np.random.RandomState(0).randint(0, 255, (10, 784))
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count)
    return (0.5 * patterns[labels] + 0.5 * random.randint(0, 255, (count, 784))).astype(np.uint8), labels


def load(count, train=True):
    """(images, labels): float32 [count, 784] from -0.5 to 0.5, int64 [count]; the first `count` of a part."""
    part = "train" if train else "t10k"
    if os.path.exists(os.path.join(FOLDER, f"{part}-images-idx3-ubyte.gz")):
        images, labels = _read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784), _read(f"{part}-labels-idx1-ubyte.gz", 8)
    else:
        images, labels = _made(count, 1 if train else 2)
    return images[:count].astype(np.float32) / 255 - 0.5, labels[:count].astype(np.int64)
