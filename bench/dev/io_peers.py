"""Peers of muster-bench-dev io: h5py, and torch's DataLoader on a tensor in memory and on h5py. Prints MB/s of each repetition as JSON.

usage: io_peers.py FILE BATCH REPETITIONS SECONDS WORKERS...
A repetition ends after SECONDS at the latest: a rate needs no whole epoch. Of its last batch every record is one of the file's, or the script fails. What is
not installed is told in "missing".
"""
import json
import os
import sys
import time
import zlib

rows, versions, missing = {}, {"python": sys.version.split()[0]}, []
try:
    import h5py
    import numpy
except ImportError as problem:
    print(json.dumps({"rows": {}, "versions": versions, "missing": [f"h5py and torch: {problem.name} is not there; on Debian: apt install python3-h5py python3-torch"]}))
    sys.exit(0)

path, batch, repetitions, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
workers = [int(word) for word in sys.argv[5:]]


def rate(batches, sample_bytes):
    """MB/s of what an iterator of batches delivers; the first, which starts the workers, is left out."""
    last = next(batches)
    began, done = time.perf_counter(), 0
    for last in batches:
        done += len(last)
        if time.perf_counter() - began > seconds:
            break
    seconds_taken = time.perf_counter() - began
    if any(zlib.crc32(numpy.ascontiguousarray(record)) not in known for record in last):
        sys.exit(f"{path}: a record was delivered that the file does not have")
    return done * sample_bytes / 1e6 / seconds_taken


def drop():
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


versions.update({"h5py": h5py.__version__, "numpy": numpy.__version__})
with h5py.File(path, "r") as file:
    images = file["train/images"]
    samples, sample_bytes = len(images), images[0].nbytes
    offset = images.id.get_offset()
# Read without HDF5: what a record may be.
known = {zlib.crc32(record) for record in numpy.fromfile(path, "u1", samples * sample_bytes, offset=offset).reshape(samples, sample_bytes)}


def sequential():
    with h5py.File(path, "r") as file:
        images, step = file["train/images"], max(1, (4 << 20) // sample_bytes)
        for first in range(0, samples, step):
            yield images[first : first + step]


def shuffled(order):
    with h5py.File(path, "r") as file:
        images = file["train/images"]
        for first in range(0, samples, batch):
            yield [images[int(i)] for i in order[first : first + batch]]


random = numpy.random.default_rng(1)
for _ in range(repetitions):
    drop()
    rows.setdefault("h5py, sequential, cold", []).append(rate(sequential(), sample_bytes))
    rows.setdefault("h5py, a sample at a time, shuffled", []).append(rate(shuffled(random.permutation(samples)), sample_bytes))

try:
    import torch
except ImportError:
    torch = None
    missing.append("torch's DataLoader: torch is not there; on Debian: apt install python3-torch")
if torch is not None:
    versions["torch"] = torch.__version__
    with h5py.File(path, "r") as file:
        tensor = torch.from_numpy(file["train/images"][:])

    class OfFile(torch.utils.data.Dataset):
        file = None

        def __len__(self):
            return samples

        def __getitem__(self, i):
            if self.file is None:  # one handle a worker, opened after the fork
                self.file = h5py.File(path, "r")
                self.images = self.file["train/images"]
            return self.images[i]

    def batches(data, count):
        loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=count)
        for each in loader:
            yield (each[0] if isinstance(each, (list, tuple)) else each).numpy()

    for name, make in {
        "torch DataLoader, tensor": lambda: torch.utils.data.TensorDataset(tensor),
        "torch DataLoader, h5py": OfFile,
    }.items():
        best = []
        for count in workers:
            rates = [rate(batches(make(), count), sample_bytes) for _ in range(repetitions)]
            if not best or numpy.median(rates) > numpy.median(best[1]):
                best = [count, rates]
        rows[f"{name}, {best[0]} workers"] = best[1]
print(json.dumps({"rows": rows, "versions": versions, "missing": missing}))
