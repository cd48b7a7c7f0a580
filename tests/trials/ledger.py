"""A training whose end has one right digest, whatever ranks it had: exact integer parameters, and a ledger in which each sample counts once.

    muster run -n 4 --min-np 2 -- python3 ledger.py elastic
    python3 ledger.py expected

Loops: `elastic` goes on in place with an ObjectState, `torch` with a TorchState; `kept` begins again with muster.kept, `file` with a checkpoint that rank 0 writes into
$LEDGER_FOLDER. A rank that finds a sample missing, or counted twice, ends with an AssertionError.
"""

import hashlib
import os
import pickle
import socket
import sys
import time

import numpy as np

STEPS = int(os.environ.get("LEDGER_STEPS", "40"))
PAUSE_S = float(os.environ.get("LEDGER_PAUSE_S", "0.02"))
BATCH = 24
SIZES = (5, 2000, 30000)
PRIME = 1000003


def gradient(sample, size):
    return (np.arange(size, dtype=np.int64) * 7907 + sample * 104723) % 997


def beginning():
    return [np.zeros(size, dtype=np.int64) for size in SIZES], np.zeros(STEPS * BATCH, dtype=np.int64)


def updated(parameters, sums, step):
    return [(one * 5 + gradients * 7 + step) % PRIME for one, gradients in zip(parameters, sums)]


def digest(parameters):
    return hashlib.sha1(b"".join(one.tobytes() for one in parameters)).hexdigest()[:16]


def sums_of(samples):
    sums = [np.zeros(size, dtype=np.int64) for size in SIZES]
    for sample in samples:
        for one in sums:
            one += gradient(sample, one.size)
    return sums


def expected():
    parameters, _ = beginning()
    for step in range(STEPS):
        parameters = updated(parameters, sums_of(range(step * BATCH, (step + 1) * BATCH)), step)
    return digest(parameters)


def main(loop):
    if loop == "torch":  # before muster, as programs do
        import torch

        torch.set_num_threads(1)
    import muster
    from muster import arrays, elastic, kept, world

    def member():
        return int(os.environ.get("MUSTER_MEMBERS", ",".join(map(str, range(world.size())))).split(",")[world.rank()])

    def say(words):
        print(f"member {member()}: {words}", flush=True)

    def next_state(step, parameters, ledger):
        mine = [step * BATCH + at for at in range(BATCH) if (at + step) % world.size() == world.rank()]
        counts = np.zeros_like(ledger)
        counts[mine] = 1
        sums = [arrays.allreduce(one, f"gradients{at}", arrays.Sum) for at, one in enumerate(sums_of(mine))]
        ledger = ledger + arrays.allreduce(counts, "counts", arrays.Sum)
        assert (ledger[: (step + 1) * BATCH] == 1).all() and not ledger[(step + 1) * BATCH :].any(), f"the ledger is wrong in step {step}"
        return updated(parameters, sums, step), ledger

    def tell_step(step):
        if world.rank() == 0:
            print(f"muster-metric: step={step}", flush=True)
        time.sleep(PAUSE_S)

    def tell_end(step, parameters, ledger):
        once = "once" if (ledger == 1).all() else "not once"
        say(f"ends as rank {world.rank()} of {world.size()} at step {step} with {digest(parameters)}, each sample {once}")

    muster.init()
    say(f"is up in generation {os.environ.get('MUSTER_GENERATION', '0')} as pid {os.getpid()} on {socket.gethostname()}")

    if loop in ("elastic", "torch"):

        def train(state):
            mine = digest([*state.parameters, state.ledger])
            everybody = arrays.allgather(np.frombuffer(mine.encode(), dtype=np.uint8).copy().reshape(1, -1), "states")
            assert all(bytes(one) == mine.encode() for one in everybody), "the ranks begin with different states"
            say(f"trains from step {state.step}, of {world.size()}")
            while state.step < STEPS:
                state.parameters, state.ledger = next_state(state.step, state.parameters, state.ledger)
                state.step += 1
                state.commit()
                tell_step(state.step)
            return state

        parameters, ledger = beginning()
        if loop == "torch":
            import muster.torch as hvd

            state = hvd.elastic.TorchState(step=0, parameters=parameters, ledger=ledger)
            state = hvd.elastic.run(train)(state)
        else:
            state = elastic.ObjectState(arrays.broadcast_object, world.rank, step=0, parameters=parameters, ledger=ledger)
            state = elastic.run_fn(train)(state)
        tell_end(state.step, state.parameters, state.ledger)
        return

    step, (parameters, ledger) = 0, beginning()
    file = os.path.join(os.environ.get("LEDGER_FOLDER", "."), "checkpoint")
    if loop == "kept":
        number = kept.newest_common()
        if number:
            step, parameters, ledger = kept.load(number)
    else:
        held = None
        if world.rank() == 0 and os.path.exists(file):
            with open(file, "rb") as source:
                held = pickle.load(source)
        held = arrays.broadcast_object(held, 0)
        if held is not None:
            step, parameters, ledger = held
    say(f"trains from step {step}, of {world.size()}")
    while step < STEPS:
        parameters, ledger = next_state(step, parameters, ledger)
        step += 1
        if loop == "kept":
            kept.keep(step, (step, parameters, ledger))
        elif world.rank() == 0:
            with open(file + ".new", "wb") as target:
                pickle.dump((step, parameters, ledger), target)
            os.replace(file + ".new", file)
        tell_step(step)
    tell_end(step, parameters, ledger)


if __name__ == "__main__":
    if sys.argv[1] == "expected":
        print(expected())
    else:
        main(sys.argv[1])
