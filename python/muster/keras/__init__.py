"""Trains Keras models on several ranks: `import muster.keras as hvd` in place of `import horovod.keras as hvd`.

Keras 3 on PyTorch, TensorFlow and JAX, and tf_keras. Keras itself is imported when it is first needed.
Tested by hand only, with Keras 3.15, tf_keras 2.21, TensorFlow 2.21 and JAX 0.10: the tests of each change run it only where these are installed.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from muster import arrays
from muster.arrays import Adasum, Average, Max, Min, Product, Sum, allgather_object, barrier, broadcast_object, join
from muster._shared import *  # noqa: F401,F403
from muster.keras import callbacks, elastic
from muster.keras._backend import backend_of, broadcast_variables, keras_module, variables_of
from muster.keras._optimizer import DistributedOptimizer, PartialDistributedOptimizer, Reduction, distribute, distributed_class
from muster.keras.compression import Compression


def _op_of(op: Optional[int], average: Optional[bool]) -> int:
    if op is not None and average is not None:
        raise ValueError("give op or average, not both")
    return op if op is not None else Sum if average is False else Average


def allreduce(
    value: Any, name: Optional[str] = None, average: Optional[bool] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0, op: Optional[int] = None,
    compression: Any = Compression.none,
) -> np.ndarray:  # fmt: skip
    """Reduces a value (a number, or what converts to a NumPy array) over the ranks. Average by default; integers truncate."""
    return arrays.grouped_allreduce([np.asarray(value)], name, _op_of(op, average), prescale_factor, postscale_factor, wire=compression.wire)[0]


def allgather(value: Any, name: Optional[str] = None) -> np.ndarray:
    """The rows of all ranks, one after the other."""
    return arrays.allgather(np.asarray(value), name)


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> np.ndarray:
    """The root's value."""
    return arrays.broadcast(np.asarray(value), root_rank, name)


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average) -> np.ndarray:
    """Reduces a value, and gives each rank its share of the rows."""
    return arrays.reducescatter(np.asarray(value), name, op)


def broadcast_global_variables(root_rank: int) -> None:
    """Refused: there are no global variables; `callbacks.BroadcastGlobalVariablesCallback` and `broadcast_variables` are what to use."""
    raise RuntimeError("there are no global variables in TensorFlow 2 and Keras 3; use broadcast_variables(model.weights, root_rank)")


def load_model(
    filepath: Any, custom_optimizers: Optional[Sequence[type]] = None, custom_objects: Optional[dict] = None, compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:  # fmt: skip
    """Loads a saved model, and makes its optimizer, with its state, a distributed one.

    Args:
        custom_optimizers: classes of optimizers that are not Keras' own.
        custom_objects: as `keras.models.load_model` takes it.
        legacy_opts: taken for the sake of scripts that give it.
    """
    objects = {one.__name__: one for one in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras_module().models.load_model(filepath, custom_objects=objects)
    if getattr(model, "optimizer", None) is not None:
        reduction = Reduction(backend_of(type(model.optimizer)), Average, 1.0, compression, global_process_set)
        distribute(model.optimizer, reduction)
    return model
