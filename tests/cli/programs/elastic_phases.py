"""Steps of which a member is lost while the others make their next world. DIE="sync:2:1 restore:0:0": in which phase which member kills itself, and in which generation;
the phases: step, broadcast, reform, restore, reset, sync, begin. GATE=FILE: no step fails before FILE is there."""

import os
import select
import signal
import sys
import threading
import time

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

import muster
from muster import arrays, elastic, world

muster.init()
member = int(os.environ["MUSTER_MEMBERS"].split(",")[world.rank()])
deaths = {tuple(one.split(":")) for one in os.environ["DIE"].split()}


def reach(phase):
    """Those that die in one phase of a generation do so when all of them have come to it."""
    generation = os.environ["MUSTER_GENERATION"]
    if (phase, str(member), generation) not in deaths:
        return
    place = f"at.{os.getppid()}.{phase}.{generation}"  # of this run
    open(f"{place}.{member}", "w").close()
    for whose in [whose for where, whose, when in deaths if (where, when) == (phase, generation)]:
        while not os.path.exists(f"{place}.{whose}"):
            time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


class State(elastic.ObjectState):
    def restore(self):
        reach("restore")
        super().restore()

    def reset(self):
        reach("reset")

    def sync(self):
        if os.environ["MUSTER_GENERATION"] == "0":
            arrays.allreduce(np.ones(1), "all", arrays.Sum)  # all have left init(), where a lost rank ends the others
        reach("sync")
        super().sync()


def broadcast(value):
    """Rank 0 is lost while the others are in its broadcast."""
    arrays.broadcast(np.ones(1), 0, "before")
    reach("broadcast")
    return arrays.broadcast_object(value)


def reform(reason, has_state):
    """One is lost that has said that it wants the next world, before any of the others has."""
    victims = [whose for phase, whose, generation in deaths if (phase, generation) == ("reform", os.environ["MUSTER_GENERATION"])]
    if str(member) in victims:
        with open("pid.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("pid.new", f"pid.{member}")
        threading.Thread(target=die_waiting, args=(threading.get_native_id(),), daemon=True).start()
    else:
        for victim in victims:
            wait_for_end(f"pid.{victim}")
    return elastic.reform_world(reason, has_state)


def die_waiting(thread):
    """Ends this process once that thread of it has said that it comes, and sleeps: in one and the same futex(2) over a while. Where that cannot be seen, after a second."""
    seen = None
    try:
        futex = {"x86_64": "202", "aarch64": "98"}[os.uname().machine]
        while True:
            with open(f"/proc/self/task/{thread}/syscall") as now, open(f"/proc/self/task/{thread}/status") as status:
                number, switches = now.read().split()[0], [line for line in status if "ctxt_switches" in line]
            if number == futex and switches == seen:
                break
            seen = switches
            time.sleep(0.005)
    except (KeyError, OSError):
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_end(name):
    while not os.path.exists(name):
        time.sleep(0.01)
    try:
        select.select([os.pidfd_open(int(open(name).read()))], [], [])
    except ProcessLookupError:
        pass


def train(state):
    reach("begin")
    while state.step < 10:
        if state.step == 3 and os.environ["MUSTER_GENERATION"] == "0":
            while not os.path.exists(os.environ.get("GATE", "/")):
                time.sleep(0.01)
            reach("step")
        arrays.allreduce(np.ones(1), "step", arrays.Sum)
        state.step += 1
        state.commit()
    return state.step


steps = elastic.run_fn(train, reform=reform)(State(broadcast, world.rank, step=0))
print(f"member {member} ends: rank {world.rank()} of {world.size()}, total {steps}", flush=True)
