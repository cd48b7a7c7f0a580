#!/usr/bin/env python3
"""Times muster.data.Loader and torch's DataLoader on one dataset file: samples a second, in turn, medians and spread.

Usage: data_loader.py FILE [--split train] [--batch 64] [--rounds 7] [--workers 0,1,2] [--json OUT]

DataLoader reads from a TensorDataset, which holds the whole split in memory, and from muster.data.Dataset, which maps the file. Everything is shuffled. With f32 both
deliver (byte / 255 - mean) / deviation; DataLoader's batches are prepared as a whole, by torch, which is faster than each image by itself. Before anything is timed each
way is gone through once, and what it delivers is added up: all must deliver the same samples. In each round every way goes through whole epochs for half a second or more, in an order that changes.
"""
import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
import warnings

import torch
from torch.utils.data import DataLoader, TensorDataset

import muster.data

MEAN, DEVIATION = 0.4, 0.3


def make_ways(path, split, batch, workers):
    """name -> (what is asked of it, function that begins an epoch)"""
    data = muster.data.Dataset(path, split, as_="torch")
    tensors = TensorDataset(*data.read())
    plain = muster.data.Loader(path, split, batch)
    ways = {"muster.data.Loader": ("u8", lambda: plain)}
    sources = {"TensorDataset": tensors, "muster.data.Dataset": data}
    loaders = {(name, n): DataLoader(source, batch, shuffle=True, num_workers=n) for name, source in sources.items() for n in workers}
    for (name, n), loader in loaders.items():
        ways[f"DataLoader, {name}, {n} workers"] = ("u8", lambda loader=loader: loader)
    if data.dtype == "uint8":
        prepared = muster.data.Loader(path, split, batch, normalize=(MEAN, DEVIATION))
        ways["muster.data.Loader, f32"] = ("f32", lambda: prepared)
        for n in workers:
            loader = loaders["TensorDataset", n]
            ways[f"DataLoader, TensorDataset, {n} workers, f32"] = ("f32", lambda loader=loader: ((normalized(x), y) for x, y in loader))
    return ways, len(data)


def normalized(images):
    return images.to(torch.float32).div_(255).sub_(MEAN).div_(DEVIATION)


def check(ways):
    """Every way of a kind delivers the same samples."""
    sums = {}
    for name, (kind, begin) in ways.items():
        total = [0.0, 0, 0]
        for images, labels in begin():
            total[0] += float(images.sum(dtype=torch.float64))
            total[1] += int((labels * (labels + 1)).sum())
            total[2] += len(images)
        wanted = sums.setdefault(kind, total)
        if total[1:] != wanted[1:] or abs(total[0] - wanted[0]) > 1e-6 * abs(wanted[0]) + 1:
            sys.exit(f"{name} delivers {total}, others {wanted}")


def time_epochs(begin, least_s):
    """Samples a second of whole epochs, for at least so many seconds."""
    began = time.perf_counter()
    samples = 0
    while (spent := time.perf_counter() - began) < least_s:
        for images, _ in begin():
            samples += len(images)
    return samples / spent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--split", default="train")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each way in each round, at least")
    parser.add_argument("--workers", type=lambda text: [int(each) for each in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--json")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message="This DataLoader will create")

    ways, samples = make_ways(given.file, given.split, given.batch, given.workers)
    check(ways)
    rates, loads = {name: [] for name in ways}, []
    for turn in range(given.rounds):
        loads.append(os.getloadavg()[0])
        order = list(ways)
        random.Random(turn).shuffle(order)
        for name in order:
            rates[name].append(time_epochs(ways[name][1], given.seconds))

    rows = []
    print(f"{'samples a second':52} {'median':>12} {'least':>12} {'most':>12}   Loader is so many times as fast (least to most)")
    for kind in ("u8", "f32"):
        names = [name for name, (its, _) in ways.items() if its == kind]
        ours = [name for name in names if name.startswith("muster")]
        theirs = [name for name in names if not name.startswith("muster")]
        best = max(theirs, key=lambda name: statistics.median(rates[name]), default=None)
        for name in ours + theirs:
            row = {"way": name, "kind": kind, "median": statistics.median(rates[name]), "least": min(rates[name]), "most": max(rates[name]), "all": rates[name]}
            text = f"{name:52} {row['median']:12,.0f} {row['least']:12,.0f} {row['most']:12,.0f}"
            if name in theirs:
                factors = [mine / its for mine, its in zip(rates[ours[0]], rates[name])]
                row["factor"] = {"median": statistics.median(factors), "least": min(factors), "most": max(factors)}
                row["best_of_data_loader"] = name == best
                text += f"   {row['factor']['median']:6.1f} ({row['factor']['least']:.1f} to {row['factor']['most']:.1f}){'  <- the best' if name == best else ''}"
            rows.append(row)
            print(text)
    about = {
        "file": os.path.basename(given.file),
        "samples": samples,
        "batch": given.batch,
        "rounds": given.rounds,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(load, 2) for load in loads],
    }
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    if given.json:
        with open(given.json, "w") as file:
            json.dump({**about, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
