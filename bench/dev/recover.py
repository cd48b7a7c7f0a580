"""The program that muster-bench-dev recover runs on each rank: it trains, loses a rank in a step, and prints when the others have got how far ("recover EVENT SECONDS", on the
clock that all processes of a node share). recover.py muster | ddp, and recover.py torchft RANKS JOIN_TIMEOUT_MS, which starts its ranks itself."""

import os
import signal
import sys
import time

began = time.monotonic()
import torch  # noqa: E402

imported = time.monotonic()
torch.set_num_threads(1)
VICTIM, AT, MORE, NEVER = 2, 10, 5, 1 << 30  # the rank that dies, in which step; the steps after it
READY = os.environ.get("RECOVER_READY", "")  # a file that a warm spare makes before it waits; the steps are counted from then on


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


if len(sys.argv) > 2:
    start_torchft(int(sys.argv[2]), int(sys.argv[3]))
{"muster": muster, "ddp": ddp, "torchft": torchft}[sys.argv[1]]()
