"""Makes callbacks for `model.fit` on several ranks. Their classes derive from the Keras that the program uses, found when they are first asked for."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Union

from muster import arrays, world
from muster.keras._backend import broadcast_variables, build_optimizer, keras_module, variables_of

_NAMES = ("BestModelCheckpoint", "BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback", "LearningRateWarmupCallback", "MetricAverageCallback")


def _make_callbacks() -> Dict[str, type]:
    keras = keras_module()
    Callback = keras.callbacks.Callback

    class BroadcastGlobalVariablesCallback(Callback):
        """Gives all ranks the root's weights and the optimizer's variables: when training begins, or after its first batch where the model is not built before."""

        def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
            super().__init__()
            self.root_rank = root_rank
            self.local = {id(one) for one in local_variables or ()}
            self.broadcast_done = False

        def _broadcast(self):
            build_optimizer(self.model)
            broadcast_variables([one for one in variables_of(self.model) if id(one) not in self.local], self.root_rank)
            self.broadcast_done = True

        def on_train_begin(self, logs=None):
            if not self.broadcast_done and self.model.built and self.model.weights:
                self._broadcast()

        def on_train_batch_end(self, batch, logs=None):
            if not self.broadcast_done:
                self._broadcast()

    class MetricAverageCallback(Callback):
        """Averages the metrics of an epoch over the ranks. To stand before callbacks that read them (checkpoints, early stopping, logs)."""

        def __init__(self, device: str = "") -> None:
            super().__init__()

        def on_epoch_end(self, epoch, logs=None):
            import numpy as np

            if not logs or world.size() == 1:
                return
            names = sorted(name for name, value in logs.items() if np.isscalar(value) or np.ndim(value) == 0)
            means = arrays.allreduce(np.array([float(logs[name]) for name in names]), "MetricAverageCallback")
            logs.update(zip(names, means.tolist()))

    class LearningRateScheduleCallback(Callback):
        """Multiplies the initial learning rate: by a number, or by multiplier(epoch), where without `staircase` the epoch grows with each batch.

        momentum_correction is taken for the sake of scripts that give it: the momentum of an optimizer of Keras is a constant of the compiled step.
        """

        def __init__(self, initial_lr: float, multiplier: Union[float, Callable[[float], float]], start_epoch: int = 0, end_epoch: Optional[int] = None,
                     staircase: bool = True, momentum_correction: bool = True, steps_per_epoch: Optional[int] = None) -> None:  # fmt: skip
            super().__init__()
            if initial_lr is None:
                raise ValueError("initial_lr is missing; give the learning rate that the multiplier is for")
            self.initial_lr = initial_lr
            self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier
            self.start_epoch, self.end_epoch = start_epoch, end_epoch
            self.staircase = staircase or not callable(multiplier)
            self.steps_per_epoch = steps_per_epoch
            self.current_epoch = 0

        def _adjust(self, epoch):
            if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
                return
            rate = self.initial_lr * self.multiplier(epoch)
            keep = self.model.optimizer.learning_rate
            if hasattr(keep, "assign"):
                keep.assign(rate)
            else:
                self.model.optimizer.learning_rate = rate

        def on_train_begin(self, logs=None):
            if not self.staircase and not self.steps_per_epoch:
                self.steps_per_epoch = self.params.get("steps")
                if not self.steps_per_epoch:
                    raise ValueError("the number of batches in an epoch is not known; give steps_per_epoch")

        def on_epoch_begin(self, epoch, logs=None):
            self.current_epoch = epoch
            if self.staircase:
                self._adjust(epoch)

        def on_train_batch_begin(self, batch, logs=None):
            if not self.staircase:
                self._adjust(self.current_epoch + batch / self.steps_per_epoch)

        def on_epoch_end(self, epoch, logs=None):
            if logs is not None:
                logs["lr"] = float(self.model.optimizer.learning_rate)

    class LearningRateWarmupCallback(LearningRateScheduleCallback):
        """Raises the learning rate from initial_lr / size to initial_lr, linearly over `warmup_epochs` (Goyal et al. 2017, arXiv:1706.02677).

        Args:
            initial_lr: the rate for all ranks together: that of one rank times `size()`.
        """

        def __init__(self, initial_lr: float, warmup_epochs: float = 5, momentum_correction: bool = True, steps_per_epoch: Optional[int] = None,
                     verbose: int = 0) -> None:  # fmt: skip
            def multiplier(epoch):
                done = min(1.0, (epoch + 1.0 / self.steps_per_epoch) / warmup_epochs)
                return 1.0 / world.size() + (1.0 - 1.0 / world.size()) * done

            super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
            self.verbose = verbose

        def on_epoch_end(self, epoch, logs=None):
            super().on_epoch_end(epoch, logs)
            if epoch == self.end_epoch - 1 and self.verbose > 0 and world.rank() == 0:
                print(f"Epoch {epoch + 1}: the warmup of the learning rate is over: {float(self.model.optimizer.learning_rate):g}")

    class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
        """A ModelCheckpoint that keeps the best model; set `filepath` before training."""

        def __init__(self, monitor: str = "val_loss", verbose: int = 0, save_weights_only: bool = False, mode: str = "auto", save_freq: Any = "epoch",
                     filepath: str = "best.weights.h5") -> None:  # fmt: skip
            path = filepath if save_weights_only else filepath.replace(".weights.h5", ".keras")
            super().__init__(path, monitor=monitor, verbose=verbose, save_best_only=True, save_weights_only=save_weights_only, mode=mode, save_freq=save_freq)

    return {
        one.__name__: one
        for one in (BestModelCheckpoint, BroadcastGlobalVariablesCallback, LearningRateScheduleCallback, LearningRateWarmupCallback, MetricAverageCallback)
    }


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    globals().update(_make_callbacks())
    return globals()[name]


__all__ = list(_NAMES)
