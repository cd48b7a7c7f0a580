"""Deals out samples, one a rank and step, until there is a file `end`, over whatever ranks there are, and prints each that is committed. HANG, DIE: of a rank that
comes later, with this RANK: it never comes to init(), or ends there. DIE_IN_SYNC: of a member with this number."""

import os
import signal
import sys
import time

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)


def is_meant(name):
    """Once, as far as the others can see."""
    meant = os.environ["RANK"] == os.environ.get(name) and not os.path.exists(name)
    if meant:
        open(name, "w").close()
    return meant


if is_meant("HANG"):
    time.sleep(1000)
if is_meant("DIE"):
    sys.exit(3)

import muster
from muster import arrays, elastic, world

muster.init()
member = int(os.environ["MUSTER_MEMBERS"].split(",")[world.rank()])


class Samples(elastic.ObjectState):
    def sync(self):
        if member == int(os.environ.get("DIE_IN_SYNC", "-1")):
            os.kill(os.getpid(), signal.SIGKILL)
        super().sync()

    def on_hosts_updated(self, timestamp, update_res):
        print(f"member {member} hears {update_res}", flush=True)
        super().on_hosts_updated(timestamp, update_res)


def train(state):
    print(f"member {member}, pid {os.getpid()}: rank {world.rank()} of {world.size()} in generation {os.environ['MUSTER_GENERATION']}", flush=True)
    while True:
        ends, ranks = arrays.allreduce(np.array([float(os.path.exists("end")), 1.0]), "step", arrays.Sum)
        assert ranks == world.size(), ranks
        sample = state.next + world.rank()
        state.next += world.size()
        print(f"sample {sample}", flush=True)
        if ends:
            return state.next
        time.sleep(0.01)
        state.commit()


samples = elastic.run_fn(train)(Samples(arrays.broadcast_object, world.rank, next=0))
print(f"member {member} ends: rank {world.rank()} of {world.size()}, {samples} samples", flush=True)
