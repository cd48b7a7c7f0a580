"""Spreads variables and Python objects: `broadcast_variables`, `broadcast_object`, `allgather_object`."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf

from muster.arrays import allgather_object
from muster.arrays import broadcast_object as _broadcast_object
from muster.keras._backend import broadcast_variables as _assign_all
from muster.process_sets import ProcessSet, global_process_set
from muster.tensorflow.mpi_ops import broadcast_


def broadcast_variables(variables: Sequence[Any], root_rank: int, process_set: ProcessSet = global_process_set, inplace: bool = False) -> None:
    """Assigns the root's values to variables of TensorFlow or Keras: `model.variables`, `optimizer.variables` (a list, or the method of older versions).

    The same number, in the same order, on all ranks. May stand in a tf.function.
    """
    variables = list(variables() if callable(variables) else variables)
    if tf.executing_eagerly():
        _assign_all(variables, root_rank, process_set)
    else:
        broadcast_(variables, root_rank, process_set=process_set)


def broadcast_global_variables(root_rank: int) -> None:
    """Refused: TensorFlow 2 has no global variables."""
    raise RuntimeError("TensorFlow 2 has no global variables; use broadcast_variables(model.variables, root_rank)")


def broadcast_object(obj: Any, root_rank: int = 0, session: Any = None, name: str = "", process_set: ProcessSet = global_process_set) -> Any:
    """The root's object; it must be such as can be pickled. `session` is taken for the sake of scripts that give it."""
    return _broadcast_object(obj, root_rank, name or None, process_set)


def broadcast_object_fn(root_rank: int = 0, session: Any = None, name: str = "", process_set: ProcessSet = global_process_set) -> Callable[[Any], Any]:
    """A function of one object that does what `broadcast_object` does."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


__all__ = ["allgather_object", "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables"]
