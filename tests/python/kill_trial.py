"""Kills or stops a rank of a training at a random point, and checks that every survivor is told in time who it was.

    python3 kill_trial.py --points 200 --programs hvd,ddp --ranks 3 --seed 1

Ranks are forked here, not started by `muster run`, which would end the survivors. Each point is one training: a rank gets SIGKILL or SIGSTOP, and every other
must raise an error that names it, and no other rank, no later than the deadline and what it takes to find out who is missing. Then every survivor must end:
even ranks by that error, odd ones after they have shut down.
"""

import argparse
import datetime
import faulthandler
import gc
import importlib
import json
import os
import random
import secrets
import select
import signal
import sys
import tempfile
import time

os.environ.setdefault("MUSTER_LOG", "off")  # read when the library is loaded

import torch
import torch.distributed as dist
from torch import nn
import muster.distributed
import muster.torch as hvd

DEADLINE = 5.0  # s; a busy machine must start the ranks within it too
SLACK = 20.0  # s more, since the machine may be busy
BUSY = 120.0  # s for a rank to come up, or to end


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 5))


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(8, 20)).square().sum().backward()
    optimizer.step()


def init_c10d(store):
    dist.init_process_group(
        "muster",
        init_method=f"file://{store}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=datetime.timedelta(seconds=DEADLINE),
    )


def run_hvd(store):
    hvd.init()
    model = net()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.0), named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return lambda: step(model, optimizer)


def run_ddp(store):
    init_c10d(store)
    model = nn.parallel.DistributedDataParallel(net(), bucket_cap_mb=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return lambda: step(model, optimizer)


def run_fsdp(store):
    from torch.distributed.fsdp import fully_shard

    init_c10d(store)
    model = net()
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return lambda: step(model, optimizer)


PROGRAMS = {"hvd": run_hvd, "ddp": run_ddp, "fsdp": run_fsdp}


def end(error):
    """A survivor's end, told of nobody: by the interpreter's own, so that everything that runs at exit does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if int(os.environ["RANK"]) % 2 == 0:
        raise error
    if dist.is_initialized():
        dist.destroy_process_group()
    hvd.shutdown()
    sys.exit(0)


def child(program, store, out, go_on):
    """One rank: says "ready" after some steps, then goes on until something fails, says what, and ends when it is told to."""

    def say(**what):
        os.write(out, (json.dumps(what) + "\n").encode())

    torch.set_num_threads(1)
    one_step = PROGRAMS[program](store)
    for _ in range(3):
        one_step()
    say(ready=True)
    while True:
        try:
            one_step()
        except Exception as error:
            ranks = getattr(error, "ranks", None)
            say(kind=type(error).__name__, text=str(error), ranks=None if ranks is None else list(ranks))
            os.read(go_on, 1)  # until all others have said theirs
            end(error)


class Ranks:
    """Forked processes that run one program."""

    def __init__(self, program, count):
        self.pids, self.pipes, self.texts = [], [], []
        go_on, self.let_go = os.pipe()
        folder = tempfile.mkdtemp()
        self.store = os.path.join(folder, "store")
        space = secrets.token_hex(16)
        for rank in range(count):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(self.let_go)
                place = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_SIZE": count, "NODE_RANK": 0, "NODE_COUNT": 1, "NSPACE": space}
                for name, value in place.items():
                    os.environ["MUSTER_" + name] = os.environ[name] = str(value)
                os.environ["MUSTER_COMM_DEADLINE"] = f"{DEADLINE}s"
                child(program, self.store, write, go_on)  # never returns: main() is left by an exception
            os.close(write)
            self.pids.append(pid)
            self.pipes.append(read)
            self.texts.append(b"")
        os.close(go_on)

    def lines(self, ranks, count, seconds):
        """Waits until each of these ranks has written so many lines. False if that takes longer, or one has ended."""
        until = time.monotonic() + seconds
        while any(self.texts[rank].count(b"\n") < count for rank in ranks):
            waited = [self.pipes[rank] for rank in ranks if self.texts[rank].count(b"\n") < count]
            ready, _, _ = select.select(waited, [], [], max(0, until - time.monotonic()))
            if not ready:
                return False
            for pipe in ready:
                more = os.read(pipe, 65536)
                if not more:
                    return False
                self.texts[self.pipes.index(pipe)] += more
        return True

    def line(self, rank, number):
        lines = self.texts[rank].split(b"\n")
        return json.loads(lines[number]) if number < len(lines) - 1 else None

    def ended(self, rank, seconds):
        """Lets all survivors go, and waits until this one has ended. Its exit status; None if that takes longer."""
        if self.let_go is not None:
            os.close(self.let_go)
            self.let_go = None
        process = os.pidfd_open(self.pids[rank])
        over, _, _ = select.select([process], [], [], seconds)
        os.close(process)
        return os.waitid(os.P_PID, self.pids[rank], os.WEXITED | os.WNOWAIT) if over else None

    def end(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        for pid, pipe in zip(self.pids, self.pipes):
            os.waitpid(pid, 0)
            os.close(pipe)
        if self.let_go is not None:
            os.close(self.let_go)
        if os.path.exists(self.store):
            os.remove(self.store)
        os.rmdir(os.path.dirname(self.store))


def trial(program, count, kill, victim, delay):
    """One point. (how long the last survivor took [s], "" or what was wrong)."""
    ranks = Ranks(program, count)
    survivors = [rank for rank in range(count) if rank != victim]
    try:
        if not ranks.lines(range(count), 1, BUSY):
            return 0.0, f"did not come up: {ranks.texts}"
        time.sleep(delay)
        begun = time.monotonic()
        os.kill(ranks.pids[victim], signal.SIGKILL if kill else signal.SIGSTOP)
        told = ranks.lines(survivors, 2, DEADLINE + SLACK)
        took = time.monotonic() - begun
        if not told:
            return took, f"a survivor was not told: {ranks.texts}"
        for rank in survivors:
            said = ranks.line(rank, 1)
            if f"rank {victim} (" not in said["text"] or said["ranks"] not in (None, [victim]):
                return took, f"rank {rank} blames others: {said}"
        for rank in survivors:
            end = ranks.ended(rank, BUSY)
            if end is None:
                os.kill(ranks.pids[rank], signal.SIGUSR1)  # it tells where it is
                select.select([], [], [], 2)
                return took, f"rank {rank} was told, and does not end"
            if (end.si_code, end.si_status) != (os.CLD_EXITED, 1 - rank % 2):
                return took, f"rank {rank} ends with {end}"
        return took, ""
    finally:
        ranks.end()


def main():
    parser = argparse.ArgumentParser(description="Kills or stops a rank at random points of a training; fails if a survivor is not told who it was.")
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--programs", default="hvd,ddp")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--deadline", type=float, default=DEADLINE, help="of a collective, in seconds")
    options = parser.parse_args()
    globals()["DEADLINE"] = options.deadline
    faulthandler.register(signal.SIGUSR1, file=os.fdopen(os.dup(2), "w"))  # of ranks too, which are forked
    gc.freeze()  # what is there now stays as it is: ranks need not look through torch when they end
    chance = random.Random(options.seed)
    programs = options.programs.split(",")
    if "fsdp" in programs:  # once, before the ranks are forked
        importlib.import_module("torch.distributed.fsdp")
    wrong, longest = 0, {}
    for point in range(options.points):
        program, kill = programs[point % len(programs)], point // len(programs) % 2 == 0
        victim, delay = chance.randrange(options.ranks), chance.uniform(0, 0.3)
        took, fault = trial(program, options.ranks, kill, victim, delay)
        key = program, "killed" if kill else "stopped"
        count, most = longest.get(key, (0, 0.0))
        longest[key] = count + 1, max(most, took)
        if fault:
            wrong += 1
            print(f"point {point} (seed {options.seed}): {key[0]}, rank {victim} {key[1]} after {delay:.3f} s: {fault}", flush=True)
    for (program, what), (count, most) in sorted(longest.items()):
        print(f"{program}: {count} points, a rank {what}; the last survivor was told after at most {most:.2f} s")
    print(f"{options.points - wrong} of {options.points} points right (torch {torch.__version__}, {options.ranks} ranks, deadline {DEADLINE} s, seed {options.seed})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
