"""What happens in one run of random_faults.py: its shape and its faults, drawn from a seed."""

import dataclasses
import random

WAYS = ("in-place", "spare", "warm-spare", "restart", "kept", "kept-in-place")
PLACES = ("node", "namespaces", "slurm")
IN_PLACE = ("in-place", "spare", "warm-spare", "kept-in-place")
KEPT = ("kept", "kept-in-place")
LOOP = {"in-place": "elastic", "spare": "elastic", "warm-spare": "elastic", "restart": "file", "kept": "kept", "kept-in-place": "torch"}
MOST_RESTARTS = 6  # more than there are faults in a run
HOSTS = 3  # of a run over several nodes


@dataclasses.dataclass
class Fault:
    """`target` gets it `delay_s` after `after`: "start", "step N" (as rank 0 tells it), or "fault" (the one before)."""

    what: str  # KILL, STOP, SEGV, ABRT, power, cut; a cut that is mended ends after mended_s
    target: str  # rank, launcher, guardian, keeper, leader, agent, host
    which: int  # of those that live then, modulo their number
    after: str
    delay_s: float
    mended_s: float = 0

    def __str__(self):
        mended = f", mended after {self.mended_s:.1f} s" if self.mended_s else ""
        return f"{self.what} of {self.target} [{self.which}] {self.delay_s:.2f} s after {self.after}{mended}"


@dataclasses.dataclass
class Story:
    way: str
    where: str
    name: str  # what it is drawn from
    ranks: int
    slots: int  # of a host
    hosts: int
    fewest: int  # --min-np; 0: not given
    spares: int  # slots on one node, hosts over several
    faults: list

    def options(self):
        """Those of `muster run`, but for where the ranks run."""
        words = ["--grace", "3s", "--verbose"]
        if self.fewest:
            words += ["--min-np", str(self.fewest)]
        if self.spares:
            words += ["--spares", str(self.spares)]
        if self.way == "warm-spare":
            words += ["--warm-spares"]
        # Over hosts nobody is started in place of a lost rank: all begin again, where idle ones are.
        if self.way in ("restart", "kept", "kept-in-place") or (self.way == "spare" and self.hosts > 1):
            words += ["--max-restarts", str(MOST_RESTARTS)]
        if self.way in KEPT:
            words += ["--keep-state", "node" if self.hosts == 1 else "node,neighbour"]
        if self.hosts > 1:
            words += ["--heartbeat", "2s"]
        return words

    def __str__(self):
        shape = f"{self.ranks} ranks on {self.hosts} {'host' if self.hosts == 1 else 'hosts'}, {self.spares} spare, at least {self.fewest or self.ranks}"
        return "\n".join([f"{self.way} on {self.where}: {shape}", *(f"    {one}" for one in self.faults)])


def draw_fault(dice, way, where, first):
    on_hosts = where != "node"
    targets = {"rank": 60, "launcher": 2, "guardian": 1}
    if on_hosts:
        targets.update({"agent": 6, "host": 12})
        if way in KEPT:
            targets.update({"keeper": 8, "leader": 4})
    target = dice.choices(list(targets), list(targets.values()))[0]
    kinds = {"KILL": 50, "STOP": 25, "SEGV": 12, "ABRT": 12}
    if target in ("launcher", "guardian"):
        kinds.pop("STOP")  # that holds the run until it goes on
    if target == "host":
        kinds = {"power": 40, "cut": 60}
    what = dice.choices(list(kinds), list(kinds.values()))[0]
    mended_s = round(dice.uniform(1, 20), 1) if what == "cut" and dice.random() < 0.5 else 0
    after = dice.choices(["start", "step", "fault"], [2, 14, 0 if first else 12])[0]
    if after == "start":
        return Fault(what, target, dice.randrange(12), "start", round(dice.uniform(0, 3), 2), mended_s)
    if after == "step":
        return Fault(what, target, dice.randrange(12), f"step {dice.randint(1, 34)}", round(dice.choice([0, dice.uniform(0, 0.1)]), 3), mended_s)
    return Fault(what, target, dice.randrange(12), "fault", round(dice.choice([0, dice.uniform(0, 0.1), dice.uniform(0, 2)]), 3), mended_s)


def draw_story(way, where, seed, index):
    name = f"{seed}/{way}/{where}/{index}"
    dice = random.Random(name)
    hosts = 1 if where == "node" else HOSTS
    slots = dice.randint(1, 2) if hosts > 1 else 0
    spares = 0
    if way in ("spare", "warm-spare"):
        spares = 1 if hosts > 1 else dice.randint(1, 2)
    elif hosts > 1 and way in ("restart", "kept") and dice.random() < 0.5:
        spares = 1
    ranks = dice.choices([2, 3, 4], [1, 2, 3])[0] if hosts == 1 else slots * (hosts - spares)
    restarts = way in ("restart", "kept")
    fewest = (0 if hosts == 1 or dice.random() < 0.3 else 1) if restarts else dice.randint(1, min(2, ranks))
    if way == "spare" and hosts > 1:
        fewest = 1
    count = dice.choices([1, 2, 3], [35, 35, 30])[0]
    faults = [draw_fault(dice, way, where, at == 0) for at in range(count)]
    return Story(way, where, name, ranks, slots if hosts > 1 else ranks + spares, hosts, fewest, spares, faults)
