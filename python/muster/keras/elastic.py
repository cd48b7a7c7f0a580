"""Runs training with Keras that can be begun again from its state: `run`, `KerasState`, and callbacks that keep it up to date."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional

from muster import arrays, world
from muster.elastic import ObjectState, run_fn
from muster.errors import failure_in
from muster.keras._backend import as_array, broadcast_variables, build_optimizer, keras_module, variables_of


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates func(state, …): spreads the state from rank 0, runs it, and begins again where the world has changed. See `muster.elastic.run_fn`."""

    @functools.wraps(func)
    def called(state: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return func(state, *args, **kwargs)
        except Exception as error:
            failure = failure_in(error)
            if failure is None or failure is error:
                raise
            raise failure from error

    return run_fn(called)


class KerasState(ObjectState):
    """State of a model and its optimizer, and of plain values, which are given as keyword arguments and become attributes.

    Args:
        model: built, or at least once called, when `sync` is called.
        optimizer: default: the model's own.
        backend: taken for the sake of scripts that give it.
    """

    def __init__(self, model: Any, optimizer: Optional[Any] = None, backend: Any = None, **kwargs: Any) -> None:
        self.model = model
        self.optimizer = optimizer if optimizer is not None else getattr(model, "optimizer", None)
        self._weights: list = []
        super().__init__(bcast_object=arrays.broadcast_object, get_rank=world.rank, **kwargs)
        self._save_weights()

    def _variables(self) -> list:
        if not self.model.weights:
            return []
        if hasattr(self.model, "jax_state_sync"):  # on JAX the values of a training under way are elsewhere
            self.model.jax_state_sync()
        build_optimizer(self.model, self.optimizer)
        return variables_of(self.model, self.optimizer)

    def _save_weights(self) -> None:
        self._weights = [as_array(one).copy() for one in self._variables()]

    def save(self) -> None:
        """Keeps a copy of all of it on the host."""
        self._save_weights()
        super().save()

    def restore(self) -> None:
        """Goes back to what was saved last."""
        for variable, value in zip(self._variables(), self._weights):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        """Gives all ranks rank 0's, and saves it. Collective."""
        broadcast_variables(self._variables(), 0)
        super().sync()
        self.save()


def _callback_class() -> type:
    return keras_module().callbacks.Callback


def _make_callbacks() -> Dict[str, type]:
    """The classes are made when they are first asked for, since the Keras they derive from is chosen then."""

    class CommitStateCallback(_callback_class()):
        """Commits the state every `batches_per_commit` batches, and at the end of an epoch."""

        def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
            super().__init__()
            self.state = state
            self.batches_per_commit = batches_per_commit
            self.batches_remaining = batches_per_commit

        def on_train_begin(self, logs=None):
            self.batches_remaining = self.batches_per_commit

        def on_train_batch_end(self, batch, logs=None):
            self.batches_remaining -= 1
            if self.batches_remaining == 0:
                self._commit()

        def on_epoch_end(self, epoch, logs=None):
            self._commit()

        def _commit(self):
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    class UpdateBatchStateCallback(_callback_class()):
        """Counts batches in `state.batch`, from 0 in each epoch. An epoch that was begun before is shorter by that many batches, where their number is known."""

        def __init__(self, state: Any) -> None:
            super().__init__()
            self.state = state
            self.steps_per_epoch = None

        def on_epoch_begin(self, epoch, logs=None):
            if self.params.get("steps"):
                if self.steps_per_epoch is None:
                    self.steps_per_epoch = self.params["steps"]
                self.params["steps"] = self.steps_per_epoch - self.state.batch

        def on_train_batch_end(self, batch, logs=None):
            self.state.batch += 1

        def on_epoch_end(self, epoch, logs=None):
            self.state.batch = 0

    class UpdateEpochStateCallback(_callback_class()):
        """Counts epochs that have ended in `state.epoch`, beginning from what it was."""

        def __init__(self, state: Any) -> None:
            super().__init__()
            self.state = state
            self.initial_epoch = state.epoch

        def on_train_begin(self, logs=None):
            self.initial_epoch = self.state.epoch

        def on_epoch_end(self, epoch, logs=None):
            self.state.epoch = self.initial_epoch + epoch + 1

    return {one.__name__: one for one in (CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback)}


_CALLBACKS = ("CommitStateCallback", "UpdateBatchStateCallback", "UpdateEpochStateCallback")


def __getattr__(name: str) -> Any:
    if name not in _CALLBACKS:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    globals().update(_make_callbacks())
    return globals()[name]


__all__ = ["KerasState", "run", *_CALLBACKS]
