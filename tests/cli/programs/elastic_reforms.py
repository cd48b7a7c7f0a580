"""Makes the world again and again, a rank in turn being the first to leave it while the others are in collectives: nothing may be left of those before."""

import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

import muster
from muster import arrays, elastic, world
from muster.errors import CollectiveError

ROUNDS = int(sys.argv[1])
WARM = 40  # until caches and memory pools have their size


def entries(folder):
    return len(os.listdir(folder))


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


muster.init()
assert elastic.announce()
pair = muster.ProcessSet([0, 1])
muster.shutdown()
muster.init(process_sets=[pair])
big = np.ones(300_000, np.float32)
number, before = 0, ()
while number < ROUNDS:
    try:
        assert arrays.allreduce(np.ones(1), "ranks", arrays.Sum)[0] == world.size()
        if pair.included():
            assert arrays.allreduce(np.ones(1), "pair", arrays.Sum, process_set=pair)[0] == 2
        if number % world.size() == world.rank():
            raise CollectiveError("left in turn")
        for _ in range(1000):
            arrays.allreduce(big, "big")
            arrays.allgather(big[: 1000 + world.rank()], "rows")
    except CollectiveError as error:
        elastic.reform_world(error)
    number = int(os.environ["MUSTER_GENERATION"])
    if number >= WARM and not before:
        before = entries("/proc/self/fd"), entries("/proc/self/task"), resident_kib()
after = entries("/proc/self/fd"), entries("/proc/self/task"), resident_kib()
assert after[:2] == before[:2], f"files and threads: {before[:2]}, {after[:2]} after {ROUNDS} generations"
assert after[2] - before[2] < 8 << 10, f"{after[2] - before[2]} KiB more memory after {ROUNDS} generations"
print(f"rank {world.rank()}: generation {os.environ['MUSTER_GENERATION']}, {after[2] - before[2]} KiB more", flush=True)
