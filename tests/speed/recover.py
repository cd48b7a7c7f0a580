#!/usr/bin/env python3
"""Measures how long ranks take to go on after one of them was killed: in place, with spares, by a restart, and by torchrun's and torchft's ways, taking turns.

    python3 tests/speed/recover.py                                 in place, with spares, by a restart, and torchrun's restart
    python3 tests/speed/recover.py --ways in-place --repeats 50    only one of them

Trains a small model with PyTorch on this node, kills a rank between forward and backward, and times what the others do.
seen: the launcher knows; told: a collective has failed on all others; met: they have their new world; state: they have gone back to the last commit and
have rank 0's state; first step: all have made a step; all again: a rank in the lost one's place has made one with them. A warm spare waits in init() when
the rank dies. imports: what importing PyTorch takes in a rank that is started again; it is part of the times of restarts.
torchrun runs with --max-restarts 3 --monitor-interval 0.1 and DDP over gloo; torchft with replica groups of one rank, and a lighthouse that waits for ranks
for 100 ms (its join_timeout_ms); torchft-defaults with one that waits for 60 s, and for 5 s for a rank that says nothing.

This file is also the program of each rank (recover.py muster | ddp | torchft): it prints when the ranks have got how far, "recover EVENT SECONDS", on the
clock that all processes of a node share.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import turns

VICTIM, AT, MORE, NEVER = 2, 10, 5, 1 << 30  # the rank that dies, in which step; the steps after it
READY = os.environ.get("RECOVER_READY", "")  # a file that a warm spare makes before it waits; the steps are counted from then on
# After the death of the rank, by the titles of their columns; "seen" is the launcher's word, the others are the ranks' own.
PHASES = {"seen": "seen", "told": "told", "met": "met", "state": "state", "step": "first step", "whole": "all again"}

IS_RANK = sys.argv[1:2] in (["muster"], ["ddp"], ["torchft"])
if IS_RANK:
    began = time.monotonic()
    import torch

    imported = time.monotonic()
    torch.set_num_threads(1)


def mark(event, when=None):
    os.write(1, f"recover {event} {when or time.monotonic():.6f}\n".encode())


class Training:
    """Steps of one model: forward, backward, and in one of them a death between the two."""

    def __init__(self, lost, wrap=lambda model: model):
        torch.manual_seed(1)
        self.model = wrap(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.lost, self.first = lost, True  # a rank has died; and no step was made since

    def run(self, dies):
        self.optimizer.zero_grad()
        loss = self.model(torch.ones(32, 64)).square().mean()
        if dies:
            mark("kill")
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        self.optimizer.step()
        if self.lost and self.first:
            self.first = False
            mark("step")


def muster():
    import muster.torch as hvd
    from muster.errors import CollectiveError

    ranks, spares = int(os.environ["RECOVER_RANKS"]), os.environ["RECOVER_SPARES"] != "0"
    again = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    imports = time.monotonic() - began
    start = os.environ["MUSTER_GENERATION"]
    if READY and int(os.environ["RANK"]) >= ranks:
        open(READY, "w").close()
    hvd.init()
    joined = os.environ["MUSTER_GENERATION"] != start  # in place of a lost one, after a wait in init()
    training = Training(again or joined)
    training.first, training.begins = not joined, None
    training.optimizer = hvd.DistributedOptimizer(training.optimizer, named_parameters=training.model.named_parameters())
    if again:
        mark("met")
        mark("imports", imports)

    class State(hvd.elastic.TorchState):
        def on_reset(self):
            if training.lost and training.first:
                mark("met")
            super().on_reset()

        def sync(self):
            super().sync()
            if training.lost and training.first:
                mark("state")

    @hvd.elastic.run
    def train(state):
        while state.step < state.end:
            try:
                if training.begins is None and (not READY or os.path.exists(READY)):
                    training.begins = state.step
                training.run(hvd.rank() == VICTIM and training.begins is not None and state.step == training.begins + AT and not training.lost)
                state.step += 1
                if spares and training.lost and hvd.size() == ranks and state.end == NEVER:
                    state.end = state.step + MORE
                    mark("whole")
                state.commit()
            except CollectiveError:
                if not training.lost:
                    mark("told")
                training.lost = True
                raise

    train(State(model=training.model, optimizer=training.optimizer, step=0, end=NEVER if spares else AT + MORE))


def ddp():
    import torch.distributed as dist

    again = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    dist.init_process_group("gloo")
    if again:
        mark("met")
        mark("imports", imported - began)
    training = Training(again, torch.nn.parallel.DistributedDataParallel)
    for step in range(AT + MORE):
        training.run(dist.get_rank() == VICTIM and step == AT and not again)


def torchft():
    """Replica groups of one rank each. A step in which one is lost is dropped by the others, which have the same state."""
    from datetime import timedelta

    import torch.distributed as dist
    import torchft as ft

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    training = Training(False)
    manager = ft.Manager(ft.ProcessGroupGloo(timeout=timedelta(seconds=30)), lambda state: None, lambda: {}, min_replica_size=2, rank=0, world_size=1,
                         store_addr="127.0.0.1", store_port=store.port, lighthouse_addr=os.environ["LIGHTHOUSE"], replica_id=f"replica_{rank}_")  # fmt: skip

    class Averaging(ft.Optimizer):
        # Not ft.DistributedDataParallel: where a rank is lost, an assertion of its hook fails in most runs (0.2.0).
        def step(self, closure=None):
            for work in [manager.allreduce(one.grad) for one in training.model.parameters()]:
                work.wait()
            super().step(closure)

    training.optimizer = Averaging(manager, training.optimizer)
    training.first = False
    whole, more = 0, MORE
    while more > 0:
        before = manager.current_step()
        training.run(rank == VICTIM and whole == AT)
        if manager.current_step() == before:
            if whole > 0:
                mark("told")
        elif manager.num_participants() == ranks:
            whole += 1
        elif whole >= AT:
            if more == MORE:
                mark("step")
            more -= 1
    manager.shutdown(wait=False)


def start_torchft(ranks, join_timeout_ms):
    from torchft.coordination import LighthouseServer

    # It waits so long for those that still beat, and counts a rank as lost after 5 s.
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=join_timeout_ms)
    variables = dict(os.environ, LIGHTHOUSE=lighthouse.address(), WORLD_SIZE=str(ranks))
    children = {os.spawnve(os.P_NOWAIT, sys.executable, [sys.executable, sys.argv[0], "torchft"], dict(variables, RANK=str(rank))): rank for rank in range(ranks)}  # fmt: skip
    failed = 0
    while children:
        pid, status = os.wait()
        if children.pop(pid) == VICTIM:
            mark("seen")
        else:
            failed = failed or status
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # a lighthouse has threads of its own


# What starts them.


class Way:
    """One way to recover: its command, and what its runs have told."""

    def __init__(self, title, command, record=None, **variables):
        self.title, self.command, self.record = title, [str(word) for word in command], record
        self.variables = {**os.environ, **variables}
        self.ms, self.failed, self.failure = {}, 0, ""  # milliseconds since the death, by phase

    def run(self, limit):
        """Runs it once, for at most so many seconds."""
        if ready := self.variables.get("RECOVER_READY"):
            pathlib.Path(ready).unlink(missing_ok=True)
        with subprocess.Popen(self.command, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
            try:
                out, errors = job.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                end_session(job)
                return self.fail(f"not done after {limit:g} s")
        events = {}
        for line in out.splitlines():
            if len(words := line.split()) == 3 and words[0] == "recover":  # the last of each event, which is the slowest rank's
                events[words[1]] = max(float(words[2]), events.get(words[1], 0))
        if job.returncode or "kill" not in events or "step" not in events:
            return self.fail(f"exit code {job.returncode}: {(errors.strip().splitlines() or [''])[-1]}")
        if self.record and (generations := json.loads(self.record.read_text()).get("generations")) and "at_s" in generations[0]:
            events["seen"] = generations[0]["at_s"]
        for phase in PHASES.keys() & events.keys():
            self.ms.setdefault(phase, []).append(1e3 * (events[phase] - events["kill"]))
        if "imports" in events:
            self.ms.setdefault("imports", []).append(1e3 * events["imports"])

    def fail(self, why):
        self.failed, self.failure = self.failed + 1, self.failure or why

    def row(self):
        middle = [turns.short(self.ms.get(phase, []), ".0f")[0] for phase in (*PHASES, "imports")]
        return [self.title, *middle[:-1], *turns.short(self.ms.get("step", []), ".0f")[1:], middle[-1], str(self.failed)]


def end_session(job):
    """Ends a program and what it has started: by SIGTERM, upon which launchers end their ranks, and after 10 s by SIGKILL."""
    for number in signal.SIGTERM, signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(10)


class Missing(Exception):
    """What a way needs is not there."""


def versions(python, *names):
    """The versions of the packages in that interpreter."""
    program = f"import importlib.metadata as m, {', '.join(names)}; print(*(m.version(n) for n in {names}))"
    try:
        said = subprocess.run([python, "-c", program], capture_output=True, text=True)
    except OSError as problem:
        raise Missing(f"{python} cannot be started: {problem.strerror}; name an interpreter by --python or --peer-python") from None
    if said.returncode:
        raise Missing(f"{python} has no {' or no '.join(names)}; name one that has by --python or --peer-python")
    return said.stdout.strip()


def make_way(name, given, folder):
    this, peer = os.path.abspath(__file__), given.peer_python or given.python
    own = {"in-place": ("in place, muster", ["--min-np", "2"]),
           "warm-spare": ("in place, with a warm spare, muster", ["--min-np", "2", "--spares", "1", "--warm-spares"]),
           "spare": ("in place, with a spare, muster", ["--min-np", "2", "--spares", "1"]),
           "restart": ("restart, muster", ["--max-restarts", "1"])}  # fmt: skip
    if name in own:
        title, options = own[name]
        spare, output = name.endswith("spare"), folder / name
        command = [given.muster, "run", "-q", "-n", given.ranks, "--output-dir", output, "--slots-per-node", given.ranks + spare, *options, "--", given.python, this, "muster"]
        ready = str(output / "ready") if name == "warm-spare" else ""
        return Way(title, command, output / "run.json", RECOVER_RANKS=str(given.ranks), RECOVER_SPARES=str(int(spare)), RECOVER_READY=ready)
    if name == "torchrun":
        # Its agent and workers share a store by default, and then most restarts fail: the next generation finds what the lost one left.
        command = [peer, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", given.ranks, "--max_restarts", "3", "--monitor_interval", "0.1", this, "ddp"]
        return Way(f"torchrun {versions(peer, 'torch')}, restart", command, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1", OMP_NUM_THREADS="1")
    defaults = name == "torchft-defaults"
    title = f"without the lost one, torchft, torch {versions(peer, 'torchft', 'torch')}{', its defaults' if defaults else ''}"
    return Way(title, [peer, this, "torchft", given.ranks, 60000 if defaults else 100], OMP_NUM_THREADS="1")


def main():
    known = ["in-place", "warm-spare", "spare", "restart", "torchrun", "torchft", "torchft-defaults"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_launcher(parser)
    parser.add_argument("--ranks", type=int, default=4, help="ranks, one of which is killed; at least 3 [4]")
    parser.add_argument("--repeats", type=int, default=20, help="runs of each, taking turns [20]")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=known[:5], help=f"some of {','.join(known)} [the first five]")
    parser.add_argument("--python", default="python3", help="the interpreter of muster's runs, with PyTorch [python3]")
    parser.add_argument("--peer-python", help="the interpreter of torchrun and torchft [that of --python]")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a run counts as failed and is ended [120]")
    given = parser.parse_args()
    if given.ranks <= VICTIM:
        parser.error(f"--ranks: {given.ranks} is less than 3")
    if strangers := [name for name in given.ways if name not in known]:
        parser.error(f"--ways: '{strangers[0]}' is unknown; give some of {', '.join(known)}")
    given.muster = given.muster.resolve()
    try:
        versions(given.python, "torch")
    except Missing as what:
        sys.exit(str(what))
    others = turns.OtherWork(given.strict)
    with tempfile.TemporaryDirectory(prefix="muster-recover") as folder:
        ways = []
        for name in given.ways:
            try:
                ways.append(make_way(name, given, pathlib.Path(folder)))
            except Missing as what:
                print(f"{name} is left out: {what}", file=sys.stderr)
        if not ways:
            return 1
        for _ in range(given.repeats):
            for way in ways:
                way.run(given.limit)
    turns.print_table([["ms since a rank was killed, to the last of the others", *PHASES.values(), "smallest", "largest", "imports", "failed"], *(way.row() for way in ways)])
    print(f"medians of {given.repeats} runs taking turns; smallest and largest: of the first step")
    for way in ways:
        if way.failed:
            print(f"{way.title}: {way.failed} of {given.repeats} runs failed; the first: {way.failure}")
    print(others.note(), end="")
    return any(way.record and way.failed for way in ways)


if not IS_RANK:
    sys.exit(main())
if len(sys.argv) > 2:
    start_torchft(int(sys.argv[2]), int(sys.argv[3]))
{"muster": muster, "ddp": ddp, "torchft": torchft}[sys.argv[1]]()
