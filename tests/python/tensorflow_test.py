# muster.tensorflow: collectives on eager tensors and in a tf.function, their gradients, DistributedGradientTape, elastic. Debian has no TensorFlow: run it in a virtual environment.
# parts: keras
# ranks: 1 2
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import check

try:
    import numpy as np
    import tensorflow as tf
except ImportError as missing:
    check.skip(f"no TensorFlow here ({missing})")

import muster.tensorflow as hvd  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
SUM_OF_RANKS = SIZE * (SIZE - 1) // 2


def collectives(value):
    rows = tf.fill([RANK + 1, 2], tf.cast(RANK, tf.float32))
    received, counts = hvd.alltoall(tf.repeat(tf.range(SIZE), 2), splits=[2] * SIZE)
    return (
        hvd.allreduce(value), hvd.allreduce(value, op=hvd.Sum), hvd.allreduce(value, op=hvd.Max, name="max"), hvd.allreduce(tf.cast(value, tf.int32)),
        hvd.allgather(rows), hvd.broadcast(value, SIZE - 1), received, counts, hvd.reducescatter(tf.range(2 * SIZE), op=hvd.Sum),
        hvd.grouped_allreduce([value, value * 2], op=hvd.Sum)[1], hvd.size_op(), hvd.rank_op(),
    )  # fmt: skip


def test_eager_and_in_a_function():
    value = tf.constant([1.0, 2.0]) + RANK
    for run in (collectives, tf.function(collectives)):
        for _ in range(2):
            mean, total, most, integers, rows, sent, received, counts, scattered, doubled, size, rank = (one.numpy().tolist() for one in run(value))
            assert np.allclose(mean, [1 + (SIZE - 1) / 2, 2 + (SIZE - 1) / 2]) and np.allclose(total, [SIZE + SUM_OF_RANKS, 2 * SIZE + SUM_OF_RANKS])
            assert most == [SIZE, SIZE + 1] and integers == [(SIZE + SUM_OF_RANKS) // SIZE, (2 * SIZE + SUM_OF_RANKS) // SIZE]
            assert rows == [[float(r)] * 2 for r in range(SIZE) for _ in range(r + 1)] and sent == [SIZE, SIZE + 1]
            assert received == [RANK] * 2 * SIZE and counts == [2] * SIZE and scattered == [SIZE * 2 * RANK, SIZE * (2 * RANK + 1)]
            assert np.allclose(doubled, [2 * one for one in total]) and (size, rank) == (SIZE, RANK)


def test_gradients_of_collectives():
    x = tf.Variable([1.0, 2.0])
    for run, expected in (
        (lambda: hvd.allreduce(x, op=hvd.Sum), [SIZE, SIZE]),
        (lambda: hvd.allreduce(x), [1, 1]),
        (lambda: hvd.allgather(x), [1, 1]),
        (lambda: hvd.broadcast(x, 0), [1, 1] if RANK == 0 else [0, 0]),
        (lambda: hvd.alltoall(tf.repeat(x, SIZE)), [SIZE, SIZE]),
        (lambda: hvd.reducescatter(tf.repeat(x, SIZE), op=hvd.Sum), [SIZE * SIZE] * 2),
    ):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(run())
        assert np.allclose(tape.gradient(loss, x), expected), (tape, expected)


def test_indexed_slices():
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([RANK]), dense_shape=tf.constant([SIZE, 2]))
    assert np.allclose(tf.convert_to_tensor(hvd.allreduce(slices, op=hvd.Sum)), np.ones([SIZE, 2]))


def test_tape_is_that_of_the_whole_batch():
    data = tf.random.stateless_uniform([4 * SIZE, 3], [1, 2])
    own = data[4 * RANK : 4 * (RANK + 1)]
    w = tf.Variable(tf.ones([3, 2]))
    unused = tf.Variable(1.0)

    def gradients(batch, tape):
        with tape:
            loss = tf.reduce_mean(tf.square(batch @ w))
        return hvd.DistributedGradientTape(tape).gradient(loss, [w, unused])

    with tf.GradientTape() as whole:
        loss = tf.reduce_mean(tf.square(data @ w))
    expected = whole.gradient(loss, w)
    for run in (gradients, tf.function(lambda batch, _: gradients(batch, tf.GradientTape()))):
        found, none = run(own, tf.GradientTape())
        assert np.allclose(found, expected, atol=1e-6) and none is None


def test_a_local_layers_gradient_stays():
    class Layer:
        def __init__(self, weight):
            self.trainable_weights = [weight]

    a, b = tf.Variable(1.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = (a + b) * (RANK + 1)
    both = hvd.PartialDistributedGradientTape(tape, local_layers=[Layer(b)]).gradient(loss, [a, b])
    assert np.allclose(both, [(SIZE + 1) / 2, (RANK + 1) / SIZE])


def test_variables_and_objects():
    variables = [tf.Variable([float(RANK)] * 3), tf.Variable(RANK)]
    hvd.broadcast_variables(variables, root_rank=SIZE - 1)
    assert variables[0].numpy().tolist() == [SIZE - 1] * 3 and variables[1].numpy() == SIZE - 1
    variables[1].assign(RANK)
    tf.function(lambda: hvd.broadcast_variables(variables, 0))()
    assert variables[1].numpy() == 0
    assert hvd.broadcast_object({"a": RANK}) == {"a": 0} and hvd.broadcast_object_fn()(RANK) == 0 and hvd.allgather_object(RANK) == list(range(SIZE))
    check.raises(RuntimeError, lambda: hvd.broadcast_global_variables(0), "broadcast_variables")


def test_elastic_state():
    state = hvd.elastic.TensorFlowState([tf.Variable(float(RANK))], step=RANK)

    @hvd.elastic.run
    def train(state):
        state.step += 1
        state.variables[0].assign_add(1.0)
        state.commit()
        state.step = 99
        state.variables[0].assign(99.0)
        state.restore()
        return state.step, float(state.variables[0])

    assert train(state) == (1, 1.0)


LOSES_A_RANK = """
import os, signal
import tensorflow as tf
import muster.tensorflow as hvd
hvd.init()
first = hvd.rank()
value = tf.Variable(0.0)

@tf.function
def step():
    return hvd.allreduce(tf.ones([]), op=hvd.Sum)

@hvd.elastic.run
def train(state):
    while state.step < 10:
        if state.step == 3 and first == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        value.assign_add(step())
        state.step += 1
        state.commit()
    return state.step

print("ends", hvd.size(), train(hvd.elastic.TensorFlowState([value], step=0)), hvd.size(), float(value), flush=True)
"""


def test_training_goes_on_without_a_rank():
    # A graph makes an error of its own of what a collective in it raises.
    if SIZE > 1 or "MUSTER" not in os.environ:
        return
    run = [os.environ["MUSTER"], "run", "--nested", "-n", "3", "--slots-per-node", "3", "--min-np", "2", "--timeout", "100s", "--", sys.executable, "-c", LOSES_A_RANK]
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("MUSTER_", "PMI", "HOROVOD_", "OMPI_", "SLURM_"))}
    done = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert done.returncode == 0 and done.stdout.count("ends 3 10 2 23.0") == 2, done.stdout


def test_ranks_that_disagree_are_told():
    if SIZE == 1:
        return
    check.raises(hvd.HorovodInternalError, lambda: hvd.allreduce(tf.ones([1 + RANK]), name="differs"), "differs")


check.run(globals())
