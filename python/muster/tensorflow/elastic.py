"""Runs training of TensorFlow that can be begun again from its state: `run`, `TensorFlowKerasState`, `TensorFlowState`."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from muster import arrays, world
from muster.elastic import ObjectState
from muster.keras._backend import as_array, broadcast_variables
from muster.keras.elastic import KerasState, run


class TensorFlowKerasState(KerasState):
    """State of a Keras model and its optimizer, and of plain values. See `muster.keras.elastic.KerasState`."""


class TensorFlowState(ObjectState):
    """State of tf.Variables and of plain values, which are given as keyword arguments and become attributes."""

    def __init__(self, variables: Optional[Sequence[Any]] = None, session: Any = None, **kwargs: Any) -> None:
        self.variables = list(variables or ())
        self._values = [as_array(one).copy() for one in self.variables]
        super().__init__(bcast_object=arrays.broadcast_object, get_rank=world.rank, **kwargs)

    def save(self) -> None:
        """Keeps a copy of the values."""
        self._values = [as_array(one).copy() for one in self.variables]
        super().save()

    def restore(self) -> None:
        """Goes back to what was saved last."""
        for variable, value in zip(self.variables, self._values):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        """Gives all ranks rank 0's values, and saves them. Collective."""
        broadcast_variables(self.variables, 0)
        super().sync()
        self.save()


__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]
