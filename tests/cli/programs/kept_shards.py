"""Trains 12 steps with one flat list of parameters that is split over the ranks: each has its shard, and Adam's moments of it, and commits them after each step, as FSDP's ranks
would. KILL=RANK:STEP,RANK:STEP…: this rank is killed there, one in each generation. HOLD=STEP:FILE: there, in the first generation, rank 0 writes to FILE.held where its memory is, and waits for FILE.
SHARD_BYTES: of a shard's parameters."""

import hashlib
import os
import signal
import sys
import time

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

import muster
from muster import arrays, kept, world

muster.init()
rank, size, generation = world.rank(), world.size(), int(os.environ["MUSTER_GENERATION"])
count = int(os.environ.get("SHARD_BYTES", "800000")) // 8
parameters = np.random.default_rng(rank).standard_normal(count)
moments = [np.zeros(count), np.zeros(count)]
kills = os.environ.get("KILL", "").split(",")[generation:]
pause, _, gate = os.environ.get("HOLD", ":").partition(":")

step = kept.newest_common()
if step:
    parameters, *moments = kept.load(step)
print(f"rank {rank} of {size} in generation {generation} begins at step {step}", flush=True)
while step < 12:
    if kills and f"{rank}:{step}" == kills[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    if generation == 0 and rank == 0 and str(step) == pause:
        with open(f"{gate}.held~", "w") as file:
            file.write(os.environ.get("MUSTER_KEPT_STATE", ""))
        os.rename(f"{gate}.held~", f"{gate}.held")
        while not os.path.exists(gate):
            time.sleep(0.01)
    norm = arrays.allreduce(np.array([float(np.square(parameters).sum())]), "norm", arrays.Sum)[0]  # what all ranks' shards have a part in
    gradient = np.sin(parameters + step) + norm / count
    moments[0] = 0.9 * moments[0] + 0.1 * gradient
    moments[1] = 0.99 * moments[1] + 0.01 * gradient * gradient
    parameters = parameters - 0.01 * moments[0] / (np.sqrt(moments[1]) + 1e-8)
    step += 1
    kept.keep(step, [parameters, *moments])
print(f"rank {rank} ends with {hashlib.sha1(parameters.tobytes()).hexdigest()}", flush=True)
