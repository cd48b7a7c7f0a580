# elastic: states, the sampler, run(), in a world that does not change, and in one that loses ranks.
# ranks: 1 2 3
import os
import subprocess
import sys

import check

try:
    import torch
except ImportError:
    check.skip("torch is not installed")

import muster.torch as hvd
from muster import elastic
from muster.errors import HostsUpdatedInterrupt
from muster.torch.elastic import state as states

hvd.init()
rank, size = hvd.rank(), hvd.size()


def parts():
    torch.manual_seed(rank)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (rank + 1), momentum=0.9)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1)


def train(model, optimizer):
    optimizer.zero_grad()
    model(torch.full((1, 3), rank + 1.0)).sum().backward()
    optimizer.step()


def same_everywhere(value):
    return all(torch.equal(value, one) for one in hvd.allgather_object(value))


def test_torch_state():
    model, optimizer, scheduler = parts()
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, scheduler=scheduler, epoch=rank, batch=0, seen=[rank])
    train(model, optimizer)
    state.sync()
    assert state.model is model and state.epoch == 0 and state.seen == [0]
    assert same_everywhere(model.weight.detach()) and optimizer.param_groups[0]["lr"] == 0.1
    assert same_everywhere(optimizer.state[model.weight]["momentum_buffer"])
    weight = model.weight.detach().clone()
    momentum = optimizer.state[model.weight]["momentum_buffer"].clone()

    def leave():
        train(model, optimizer)
        model(torch.ones(1, 3)).sum().backward()  # of a step that does not come to its end
        scheduler.step()
        state.epoch = 5
        state.seen.append(5)

    for _ in range(2):  # restoring twice gives the same
        leave()
        state.restore()
        assert model.weight.grad is None and model.bias.grad is None
        assert torch.equal(model.weight, weight) and torch.equal(optimizer.state[model.weight]["momentum_buffer"], momentum)
        assert state.epoch == 0 and state.seen == [0] and scheduler.last_epoch == 0
    leave()
    state.commit()
    left = model.weight.detach().clone()
    leave()
    state.epoch = 6
    state.restore()
    assert torch.equal(model.weight, left) and state.epoch == 5 and state.seen == [0, 5] and scheduler.last_epoch == 1
    assert optimizer.param_groups[0]["lr"] == 0.1 * 0.1


def test_an_attribute_that_is_replaced():
    model, optimizer, _ = parts()
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer)
    other = torch.nn.Linear(3, 2)
    wanted = other.weight.detach().clone()
    state.model = other
    with torch.no_grad():
        other.weight.zero_()
    state.restore()
    assert state.model is other and torch.equal(other.weight, wanted)


def test_the_registry():
    class Thing:
        value = 1

    class Handler(states.StateHandler):
        def save(self):
            self.saved = self.value.value

        def restore(self):
            self.value.value = self.saved

        def sync(self):
            self.value.value = hvd.broadcast_object(self.value.value)

    before = states.get_handler_registry()
    states.set_handler_registry([*before, (Thing, Handler)])
    try:
        thing = Thing()
        thing.value = rank
        state = hvd.elastic.TorchState(thing=thing)
        state.sync()
        assert state.thing is thing and thing.value == 0
        state.commit()
        thing.value = 7
        state.restore()
        assert thing.value == 0
    finally:
        states.set_handler_registry(before)


def test_sampler():
    count = 4 * size + 1
    sampler = hvd.elastic.ElasticSampler(range(count), shuffle=True, seed=3)

    def of_all():
        return [i for part in hvd.allgather_object(list(sampler)) for i in part]

    assert len(sampler) == 5 and len(list(sampler)) == 5
    first, mine = of_all(), list(sampler)
    assert set(first) == set(range(count)) and len(first) == 5 * size
    assert of_all() == first
    sampler.record_batch(0, 2)
    assert sampler.processed_num == 2 * size
    sampler.load_state_dict(sampler.state_dict())
    assert list(sampler) == mine[2:] and len(sampler) == 3  # as without the interruption: the samples that are dealt twice, too
    sampler.set_epoch(1)
    assert sampler.processed_num == 0 and of_all() != first
    assert list(hvd.elastic.ElasticSampler(range(count), shuffle=False))[:2] == [rank, rank + size]
    few = hvd.elastic.ElasticSampler(range(1), shuffle=False)
    assert list(few) == [0]
    few.record_batch(0, 1)
    few.reset()
    assert list(few) == [] and len(few) == 0


def test_sampler_in_a_state():
    dataset = list(range(8 * size))
    sampler = hvd.elastic.ElasticSampler(dataset)
    loader = torch.utils.data.DataLoader(dataset, batch_size=2, sampler=sampler)
    state = hvd.elastic.TorchState(sampler=sampler)
    seen = []
    for i, batch in enumerate(loader):
        seen += batch.tolist()
        sampler.record_batch(i, 2)
        if i == 1:
            break
    state.commit()
    sampler.record_batch(2, 2)
    state.restore()
    assert sampler.processed_num == 4 * size
    state.sync()
    for batch in loader:
        seen += batch.tolist()
    assert sorted(i for part in hvd.allgather_object(seen) for i in part) == dataset


def test_run_returns_what_training_returns():
    model, optimizer, _ = parts()
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, batch=rank)

    @hvd.elastic.run
    def training(state, more, *, last):
        """Trains."""
        assert state.batch == 0 and same_everywhere(model.weight.detach())
        return more + last

    assert training(state, 2, last=3) == 5 and training.__doc__ == "Trains."


def test_hosts_that_change_are_heard_of_by_all_ranks_at_once():
    calls = []
    state = hvd.elastic.TorchState(batch=0)
    state.register_reset_callbacks([lambda: calls.append("first"), lambda: calls.append("second")])

    @hvd.elastic.run
    def training(state):
        while state.batch < 6:
            state.batch += 1
            if rank == 0 and state.batch == 3:
                state.on_hosts_updated(1, elastic.HostUpdateResult.removed)
            if rank == 0 and state.batch == 5:
                state.on_hosts_updated(1, elastic.HostUpdateResult.added)  # not newer: not heard
            try:
                state.commit()
            except HostsUpdatedInterrupt as interrupt:
                calls.append((state.batch, interrupt.skip_sync))
                raise
        return state.batch

    from muster import world

    before = world.generation
    assert training(state) == 6
    assert calls == [(3, True), "first", "second"], calls
    assert world.generation == before + 1
    assert torch.equal(hvd.allreduce(torch.ones(2), op=hvd.Sum), torch.full((2,), float(size)))


def test_a_reset_of_ones_own_goes_on_after_a_failure():
    resets = []
    state = hvd.elastic.TorchState(batch=0)

    def training(state):
        state.batch += 10
        if not resets:
            raise hvd.HorovodInternalError("a failure for the test")
        return state.batch

    assert elastic.run_fn(training, lambda: resets.append(1))(state) == 10 and resets == [1]


def test_a_failure_that_cannot_be_mended_is_raised_and_the_state_restored():
    state = hvd.elastic.TorchState(batch=0)

    @hvd.elastic.run
    def training(state):
        state.batch = 9
        raise hvd.HorovodInternalError("rank 5 has gone")

    check.raises(hvd.HorovodInternalError, lambda: training(state), "rank 5 has gone")
    assert state.batch == 0


def run_elastic(program, ranks, *options):
    """The exit code and the output of `program` on so many ranks."""
    run = [os.environ["MUSTER"], "run", "--nested", "-n", str(ranks), "--slots-per-node", str(ranks), "--timeout", "100s", *options, "--"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "PMI", "HOROVOD_", "OMPI_", "SLURM_"))}
    done = subprocess.run([*run, sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    return done.returncode, done.stdout


TRAINING = """
import os, signal, sys, torch, muster.torch as hvd
halves = [hvd.ProcessSet(ranks) for ranks in ([0, 1], [2, 3], [1, 2, 3])]
hvd.init(process_sets=halves)
member, victims = hvd.rank(), [int(one) for one in sys.argv[1:]]
torch.manual_seed(member)
data = torch.arange(96)
sampler = hvd.elastic.ElasticSampler(data)
model = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, step=0)
sizes = []
state.register_reset_callbacks([lambda: sizes.append(hvd.size())])

@hvd.elastic.run
def train(state):
    for i, batch in enumerate(torch.utils.data.DataLoader(data, 2, sampler=sampler)):
        if state.step == 3 and member in victims and hvd.size() == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(batch.float()[:, None] / 96).square().mean().backward()
        optimizer.step()
        print("samples", *batch.tolist(), flush=True)
        sampler.record_batch(i, 2)
        state.step += 1
        state.commit()
    return state.step

steps = train(state)
weights = [one.tolist() for one in hvd.allgather_object(torch.cat([one.flatten() for one in model.parameters()]).detach())]
assert all(one == weights[0] for one in weights), weights
places = {"RANK": hvd.rank(), "WORLD_SIZE": hvd.size(), "HOROVOD_RANK": hvd.rank(), "HOROVOD_SIZE": hvd.size(), "LOCAL_RANK": hvd.local_rank()}
assert all(os.environ[name] == str(value) for name, value in places.items()), places
for half in halves:
    if half.process_set_id is not None and half.included():
        ranks = hvd.allgather(torch.tensor([hvd.rank()]), name="set", process_set=half).tolist()
        assert ranks == half.ranks, (ranks, half)
print("end", hvd.rank(), hvd.size(), steps, sizes, [half.process_set_id is not None and half.ranks for half in halves], flush=True)
"""


def check_training(victims, left, steps, sets):
    """Each sample is in one step, once; those that are left end together."""
    if rank != 0 or size != 1 or "MUSTER" not in os.environ:
        return
    code, said = run_elastic(TRAINING.replace("sys.argv[1:]", repr(victims)), 4, "--min-np", "2")
    assert code == 0, said
    samples = [int(one) for line in said.splitlines() if line.startswith("samples ") for one in line.split()[1:]]
    assert sorted(samples) == list(range(96)), said
    ends = sorted(line for line in said.splitlines() if line.startswith("end "))
    assert ends == [f"end {one} {left} {steps} [{left}] {sets}" for one in range(left)], said


def test_training_goes_on_without_a_rank():
    check_training([2], 3, 3 + 12, [[0, 1], False, False])


def test_training_goes_on_without_rank_0():
    check_training([0], 3, 3 + 12, [False, [1, 2], [0, 1, 2]])


def test_training_goes_on_without_two_ranks():
    check_training([0, 1], 2, 3 + 18, [False, [0, 1], False])


LAUNCHED = """
import os, socket, struct, threading
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.environ["MUSTER_EVENTS"] = f"{theirs.fileno()}/2"
said = []
HELLO, ANNOUNCE, REFORM, LOST, GENERATION, HOSTS_CHANGED = range(6)  # the alternatives of message in pmix/member_message.hpp

def launcher():
    number = 0
    while True:
        said.append(ours.recv(1000))
        number += said[-1][0] == REFORM
        if said[-1][0] in (HELLO, REFORM):
            name = f"job{number}".encode()
            who = struct.pack(f"<I{len(name)}s6iI4si", len(name), name, 0, 1, 0, 1, 0, 1, 4, b"here", 0)
            ours.send(struct.pack("<Bi", GENERATION, number) + who + struct.pack("<Ii?IiI", 1, 7, False, 0, 0, 0))

threading.Thread(target=launcher, daemon=True).start()
import muster.torch as hvd
from muster import elastic
hvd.init()
heard, synced = [], []

class State(hvd.elastic.TorchState):
    def on_hosts_updated(self, timestamp, update):
        heard.append(update)
        super().on_hosts_updated(timestamp, update)

    def sync(self):
        synced.append(self.step)
        super().sync()

@hvd.elastic.run
def train(state):
    while state.step < 5:
        state.step += 1
        if state.step == 3:
            ours.send(struct.pack("<B??", HOSTS_CHANGED, False, True))
            while True:
                state.commit()
    return state.step

assert train(State(step=0)) == 5
assert heard == [elastic.HostUpdateResult.removed] and synced == [0], (heard, synced)
assert [one[:7] for one in said if one[0] != ANNOUNCE] == [struct.pack("<BI", HELLO, 0), struct.pack("<Bi??", REFORM, 0, True, True)], said
assert os.environ["MUSTER_GENERATION"] == "1" and os.environ["MUSTER_MEMBERS"] == "7"
"""


def test_the_launcher_tells_of_changed_hosts_and_whether_state_is_spread():
    if rank == 0 and size == 1:
        subprocess.run([sys.executable, "-c", LAUNCHED], check=True, timeout=100)


def test_a_state_that_was_not_spread_to_its_end_is_that_of_before():
    class Failing(states.StateHandler):
        def save(self):
            pass

        def restore(self):
            pass

        def sync(self):
            raise hvd.HorovodInternalError("a rank has gone")

    class Thing:
        pass

    before = states.get_handler_registry()
    states.set_handler_registry([*before, (Thing, Failing)])
    try:
        model, optimizer, _ = parts()
        state = hvd.elastic.TorchState(epoch=rank, model=model, thing=Thing())
        weight = model.weight.detach().clone()
        check.raises(hvd.HorovodInternalError, state.sync, "a rank has gone")
        state.restore()
        assert torch.equal(model.weight, weight) and state.epoch == rank
    finally:
        states.set_handler_registry(before)


def test_a_rank_that_dies_ends_the_job_with_its_reason():
    if rank != 0 or size == 1 or "MUSTER" not in os.environ:
        return
    program = (
        "import os, torch, muster.torch as hvd\n"
        "hvd.init()\n"
        "state = hvd.elastic.TorchState(batch=0)\n"
        "@hvd.elastic.run\n"
        "def train(state):\n"
        "    for state.batch in range(5):\n"
        "        if hvd.rank() == 1 and state.batch == 3: os._exit(7)\n"
        "        hvd.allreduce(torch.ones(1), name='gradient')\n"
        "        state.commit()\n"
        "train(state)\n"
    )
    code, said = run_elastic(program, 2)
    assert code == 7 and "rank 1" in said and "exited with code 7" in said, said


check.run(globals())
