# muster.keras: optimizers of Keras 3 on each backend and of tf_keras, callbacks, load_model, elastic. Debian has no Keras: run it in a virtual environment.
# parts: keras
# ranks: 1 2
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import check

try:
    import numpy as np

    if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        import tf_keras as keras

        BACKEND = "tf_keras"
    else:
        import keras

        BACKEND = keras.backend.backend()
except ImportError as missing:
    check.skip(f"no Keras here ({missing})")

import muster.keras as hvd  # noqa: E402
from muster.keras._backend import as_array, broadcast_variables, variables_of  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
X = np.random.RandomState(7).rand(64, 8).astype("f4")
Y = np.random.RandomState(8).randint(0, 3, 64)


def model_of(optimizer=None, seed=3, **how):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(3)])
    if optimizer is not None:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False, **how)
    return model


def weights_of(model):
    return np.concatenate([np.ravel(one) for one in model.get_weights()])


def test_a_step_is_that_of_the_whole_batch():
    own = slice(RANK * (64 // SIZE), (RANK + 1) * (64 // SIZE))
    for options in ({}, {"gradient_predivide_factor": 2.0}, {"op": hvd.Sum}):
        scale = SIZE if options.get("op") == hvd.Sum else 1
        alone = model_of(keras.optimizers.SGD(0.1 * scale))
        alone.fit(X, Y, epochs=2, batch_size=64, verbose=0, shuffle=False)
        distributed = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), **options))
        distributed.fit(X[own], Y[own], epochs=2, batch_size=64, verbose=0, shuffle=False)
        assert np.allclose(weights_of(alone), weights_of(distributed), atol=1e-5), (options, np.abs(weights_of(alone) - weights_of(distributed)).max())


def test_compressed_gradients_are_near():
    alone = model_of(keras.optimizers.SGD(0.1))
    alone.fit(X, Y, epochs=1, batch_size=64, verbose=0, shuffle=False)
    for compression, within in ((hvd.Compression.fp16, 1e-3), (hvd.Compression.bf16, 1e-2)):
        distributed = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression))
        distributed.fit(X, Y, epochs=1, batch_size=64, verbose=0, shuffle=False)
        assert np.allclose(weights_of(alone), weights_of(distributed), atol=within)


def test_a_local_layers_gradient_stays():
    own = slice(RANK * (64 // SIZE), (RANK + 1) * (64 // SIZE))
    for scale in (True, False):
        alone = model_of(keras.optimizers.SGD(0.1 / SIZE if scale else 0.1))
        alone.fit(X[own], Y[own], epochs=1, batch_size=64, verbose=0, shuffle=False)
        together = model_of(keras.optimizers.SGD(0.1))
        together.fit(X, Y, epochs=1, batch_size=64, verbose=0, shuffle=False)
        partial = model_of()
        optimizer = hvd.PartialDistributedOptimizer(keras.optimizers.SGD(0.1), local_layers=partial.layers[-1], scale_local_gradients=scale)
        partial.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
        partial.fit(X[own], Y[own], epochs=1, batch_size=64, verbose=0, shuffle=False)
        for one, other in zip(partial.layers[-1].get_weights(), alone.layers[-1].get_weights()):
            assert np.allclose(one, other, atol=1e-5), ("local", scale)
        for one, other in zip(partial.layers[0].get_weights(), together.layers[0].get_weights()):
            assert np.allclose(one, other, atol=1e-5), ("reduced", scale)
    check.raises(ValueError, lambda: hvd.PartialDistributedOptimizer(keras.optimizers.SGD(), local_layers=3), "layers")


def test_the_optimizer_stays_of_its_class():
    opt = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01, beta_1=0.8))
    assert isinstance(opt, keras.optimizers.Adam) and type(opt).__name__ == "Adam" and abs(opt.beta_1 - 0.8) < 1e-6
    check.raises(ValueError, lambda: hvd.DistributedOptimizer(opt), "already")
    check.raises(ValueError, lambda: hvd.DistributedOptimizer(keras.optimizers.SGD(), op=hvd.Sum, gradient_predivide_factor=2.0), "Average")


def test_several_backward_passes():
    if BACKEND == "tf_keras":
        check.raises(ValueError, lambda: hvd.DistributedOptimizer(keras.optimizers.SGD(), backward_passes_per_step=2), "Keras 3")
        return
    for average in (False, True):
        alone = model_of(keras.optimizers.SGD(0.1 if average else 0.2))
        alone.fit(X, Y, epochs=1, batch_size=64, verbose=0, shuffle=False)
        opt = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), backward_passes_per_step=2, average_aggregated_gradients=average)
        distributed = model_of(opt)
        distributed.fit(X, Y, epochs=1, batch_size=32, verbose=0, shuffle=False)
        assert np.allclose(weights_of(alone), weights_of(distributed), atol=1e-5)


def test_broadcast_and_metrics_and_warmup():
    model = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), seed=10 + RANK)
    seen = []

    class Look(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(float(as_array(self.model.optimizer.learning_rate)))

    history = model.fit(X + RANK, Y, epochs=3, batch_size=16, verbose=0, callbacks=[
        hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(0.2, warmup_epochs=2), hvd.callbacks.LearningRateScheduleCallback(0.2, 0.1, start_epoch=2), Look()])  # fmt: skip
    assert all(np.array_equal(one, weights_of(model)) for one in hvd.allgather(weights_of(model)[None]))
    losses = hvd.allgather(np.array([history.history["loss"]]))
    assert all(np.array_equal(one, losses[0]) for one in losses)
    first = 0.2 * (1 / SIZE + (1 - 1 / SIZE) * 0.5)
    assert np.allclose(seen, [first, 0.2, 0.02], rtol=1e-5), (seen, first)


def test_load_model_keeps_the_state_and_reduces():
    model = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)))
    model.fit(X, Y, epochs=1, batch_size=64, verbose=0, shuffle=False)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.keras")
        model.save(file)
        loaded = hvd.load_model(file)
    assert isinstance(loaded.optimizer, keras.optimizers.SGD) and hasattr(loaded.optimizer, "_reduction")
    for one in (model, loaded):
        one.fit(X * (RANK + 1), Y, epochs=1, batch_size=64, verbose=0, shuffle=False)
    assert np.allclose(weights_of(model), weights_of(loaded), atol=1e-6)
    assert all(np.array_equal(one, weights_of(loaded)) for one in hvd.allgather(weights_of(loaded)[None]))


def test_values():
    assert float(hvd.allreduce(RANK + 1.0, op=hvd.Sum)) == SIZE * (SIZE + 1) / 2 and int(hvd.allreduce(3)) == 3
    assert hvd.allgather(np.full((RANK + 1, 2), RANK)).shape == (SIZE * (SIZE + 1) // 2, 2)
    assert hvd.broadcast(np.array([RANK, 5]), SIZE - 1).tolist() == [SIZE - 1, 5]
    assert hvd.reducescatter(np.arange(2 * SIZE), op=hvd.Sum).tolist() == [SIZE * (2 * RANK), SIZE * (2 * RANK + 1)]
    assert hvd.broadcast_object({"rank": RANK}) == {"rank": 0} and hvd.allgather_object(RANK) == list(range(SIZE))


def test_elastic_state():
    model = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), seed=20 + RANK)
    state = hvd.elastic.KerasState(model, batch=RANK, epoch=0)
    runs = []

    @hvd.elastic.run
    def train(state):
        runs.append((state.batch, state.epoch))
        model.fit(X, Y, epochs=2 - state.epoch, steps_per_epoch=4, batch_size=16, verbose=0, callbacks=[
            hvd.elastic.UpdateEpochStateCallback(state), hvd.elastic.UpdateBatchStateCallback(state), hvd.elastic.CommitStateCallback(state, 2)])  # fmt: skip
        before = weights_of(model)
        model.set_weights([one * 0 for one in model.get_weights()])
        state.restore()
        assert np.array_equal(weights_of(model), before) and np.any(before)
        return state.epoch

    assert train(state) == 2 and runs == [(0, 0)] and state.batch == 0
    assert all(np.array_equal(one, weights_of(model)) for one in hvd.allgather(weights_of(model)[None]))


def test_a_rank_outside_of_the_set_steps_alone():
    if SIZE == 1:
        return
    hvd.shutdown()
    alone = hvd.ProcessSet([0])
    hvd.init(process_sets=[alone])
    model = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), process_set=alone))
    model.fit(X * (RANK + 1), Y, epochs=1, batch_size=64, verbose=0)
    broadcast_variables(variables_of(model), 0)


def test_other_backends():
    """The same file once more, on one rank, for each backend that is there."""
    if os.environ.get("MUSTER_TEST_ONE_BACKEND") or SIZE > 1:
        return
    from importlib import util

    for backend, package in (("jax", "jax"), ("tensorflow", "tensorflow"), ("torch", "torch"), ("tf_keras", "tf_keras")):
        if backend == BACKEND or util.find_spec(package) is None:
            continue
        which = {"TF_USE_LEGACY_KERAS": "1"} if backend == "tf_keras" else {"KERAS_BACKEND": backend, "TF_USE_LEGACY_KERAS": "0"}
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI_"))}
        subprocess.run([sys.executable, __file__], env={**own, **which, "MUSTER_TEST_ONE_BACKEND": "1"}, check=True)


check.run(globals())
