"""Runs a function of NumPy arrays on TensorFlow's tensors: at once where they are eager, by tf.py_function in a graph.

In a tf.function such calls run one after the other, in the order they were written in, on every rank the same. XLA cannot compile them.
"""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

import numpy as np
import tensorflow as tf
from muster.errors import held


def call(function: Callable[..., Sequence[np.ndarray]], tensors: Sequence[tf.Tensor], dtypes: Sequence[Any], shapes: Sequence[Any]) -> List[tf.Tensor]:
    """function(*arrays) as tensors of these types and shapes (None: not known)."""
    checked = held(function)

    def run(*given: tf.Tensor) -> List[tf.Tensor]:
        made = checked(*[one.numpy() for one in given])
        return [tf.constant(array, dtype) for array, dtype in zip(made, dtypes)]

    if tf.executing_eagerly() and all(hasattr(tensor, "numpy") for tensor in tensors):
        return run(*tensors)
    results = tf.py_function(run, list(tensors), list(dtypes))
    for result, shape in zip(results, shapes):
        if shape is not None:
            result.set_shape(shape)
    return list(results)
