"""Peer of muster-bench-dev io: h5py over MPI-IO, its ranks reading parts of one array together (collective). Rank 0 prints MB/s of each repetition as JSON.

usage: io_mpi_peer.py FILE REPETITIONS, on every rank, with H5PY_ALWAYS_USE_MPI=1 (Debian's h5py chooses by it)
"""
import json
import sys
import time

path, repetitions = sys.argv[1], int(sys.argv[2])
try:
    from mpi4py import MPI
    import h5py
    import numpy

    if not h5py.get_config().mpi:
        raise ImportError("h5py with MPI", name="h5py with MPI")
except ImportError as problem:
    print(json.dumps({"missing": f"{problem.name} is not there; on Debian: apt install python3-h5py-mpi python3-mpi4py"}))
    sys.exit(0)
world = MPI.COMM_WORLD
rates = []
with h5py.File(path, "r", driver="mpio", comm=world) as file:
    images = file["train/images"]
    samples, sample_bytes, offset = len(images), int(numpy.prod(images.shape[1:])) * images.dtype.itemsize, images.id.get_offset()
    step = max(1, (4 << 20) // sample_bytes)
    first, end = samples * world.rank // world.size, samples * (world.rank + 1) // world.size
    rounds = world.allreduce(-(-(end - first) // step), op=MPI.MAX)
    for _ in range(repetitions):
        world.Barrier()
        began = time.perf_counter()
        for i in range(rounds):  # as many for each rank: the calls are collective
            at = min(first + i * step, end)
            with images.collective:
                part = images[at : min(at + step, end)]
        world.Barrier()
        rates.append(samples * sample_bytes / 1e6 / (time.perf_counter() - began))
        if len(part) and not (part.ravel() == numpy.fromfile(path, "u1", part.nbytes, offset=offset + at * sample_bytes)).all():
            sys.exit(f"{path}: h5py delivered other bytes than the file has")
if world.rank == 0:
    print(json.dumps({"rates": rates, "ranks": world.size, "h5py": h5py.__version__}))
