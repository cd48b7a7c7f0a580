"""Counts steps with the ranks that are left. FAULTS="kill:2:5 exit:1:7:3": what a member does before a step, once; of exit, the code. UNTIL=4: and until there
are so many ranks; "stop-asking:1:5" stops member 1 while it waits for the next generation; "busy:2:5:1" has member 2 compute until member 1 is stopped; MOST=2: and as long as there are more. GATE=FILE: no fault before FILE is there. KILL_AS_JOINING=4: the spare that has this RANK while it waits is
killed at the moment when it is taken in."""

import os
import signal
import sys
import threading
import time

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

import _muster_native
import muster
from muster import arrays, elastic, world



def die_as_joining():
    _muster_native.generation()
    os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("KILL_AS_JOINING") == os.environ["RANK"]:
    threading.Thread(target=die_as_joining).start()
muster.init(process_sets=[[1, 2]])
member = int(os.environ["MUSTER_MEMBERS"].split(",")[world.rank()])
faults = {(int(whose), int(step)): [what, *more] for what, whose, step, *more in (one.split(":") for one in os.environ.get("FAULTS", "").split())}
state = elastic.ObjectState(arrays.broadcast_object, world.rank, step=0, total=0)
on_reset = {(int(whose), int(generation)) for whose, generation in (one.split(":") for one in os.environ.get("KILL_ON_RESET", "").split())}


def generation():
    return int(os.environ["MUSTER_GENERATION"])


def reset():
    if (member, generation()) in on_reset:
        os.kill(os.getpid(), signal.SIGKILL)


def is_stopped(file):
    try:
        with open(file) as pid, open(f"/proc/{pid.read()}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:  # not written yet
        return False


def fail(what, code=0):
    while not os.path.exists(os.environ.get("GATE", "/")):
        time.sleep(0.01)
    if what == "exit":
        os._exit(int(code))
    if what == "stop-asking":  # the others are lost at once, so that it has asked by then
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        return
    if what == "busy":
        while not is_stopped(f"pid.{code}"):
            time.sleep(0.01)
        return
    os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[what])


def train(state):
    print(f"member {member}: rank {world.rank()} of {world.size()} in generation {generation()} from step {state.step}, RANK {os.environ['RANK']}, "
          f"HOROVOD_SIZE {os.environ['HOROVOD_SIZE']}", flush=True)  # fmt: skip
    with open(f"pid.{member}", "w") as file:
        file.write(str(os.getpid()))
    if "GATE" in os.environ:
        print(f"member {member} has pid {os.getpid()}", flush=True)
    while state.step < int(os.environ.get("STEPS", "10")) or world.size() < int(os.environ.get("UNTIL", "0")) or world.size() > int(os.environ.get("MOST", "1000")):
        fault = faults.pop((member, state.step), None)
        if fault:
            fail(*fault)
        ranks = arrays.allreduce(np.ones(1), "ranks", arrays.Sum)
        steps = arrays.allreduce(np.array([float(state.step)]), "steps", arrays.Sum)
        assert ranks[0] == world.size() and steps[0] == state.step * world.size(), (ranks, steps)
        state.step += 1
        state.total += state.step
        state.commit()
    return state.total


state.register_reset_callbacks([reset])
total = elastic.run_fn(train)(state)
print(f"member {member} ends: rank {world.rank()} of {world.size()}, total {total}", flush=True)
