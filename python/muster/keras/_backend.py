"""Tells which Keras a program uses, and moves values between its variables and NumPy."""

from __future__ import annotations

import os
import sys
from typing import Any, List, Optional, Sequence

import numpy as np

from muster import arrays


def keras_module() -> Any:
    """The package `tf_keras` where TF_USE_LEGACY_KERAS=1 asks for it or nothing else was imported, else `keras`. ImportError where there is neither."""
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "") in ("1", "true", "True")
    if legacy or ("tf_keras" in sys.modules and "keras" not in sys.modules):
        import tf_keras

        return tf_keras
    import keras

    return keras


def is_keras3(optimizer_class: type) -> bool:
    """Returns whether it is an optimizer of Keras 3, which has one `apply` for all backends; else one of Keras 2 (tf_keras)."""
    return hasattr(optimizer_class, "apply")


def backend_of(optimizer_class: type) -> str:
    """Returns what its gradients are: of "torch", "tensorflow" or "jax"."""
    if not is_keras3(optimizer_class):
        return "tensorflow"
    import keras

    return keras.backend.backend()


def as_array(variable: Any) -> np.ndarray:
    """The value of a variable of Keras or TensorFlow, on the host."""
    if hasattr(variable, "numpy"):
        return np.asarray(variable.numpy())
    import keras

    return keras.ops.convert_to_numpy(variable)


def variables_of(model: Any, optimizer: Optional[Any] = None) -> List[Any]:
    """Weights of the model and variables of its optimizer: all that ranks must have in common. Seeds are each rank's own."""
    optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
    of_optimizer = [] if optimizer is None else optimizer.variables
    return list(model.weights) + list(of_optimizer() if callable(of_optimizer) else of_optimizer)


def build_optimizer(model: Any, optimizer: Optional[Any] = None) -> None:
    """Makes the optimizer's variables, where that was left to the first step."""
    optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
    if optimizer is not None and hasattr(optimizer, "build") and not getattr(optimizer, "built", False) and model.trainable_variables:
        optimizer.build(model.trainable_variables)


def broadcast_variables(variables: Sequence[Any], root_rank: int, process_set: Any = arrays.global_process_set) -> None:
    """Assigns the root's values to variables of Keras or TensorFlow. Collective, with the same number of variables in the same order; blocks."""
    variables = list(variables)
    for variable, value in zip(variables, arrays.broadcast_all([as_array(one) for one in variables], root_rank, process_set=process_set)):
        variable.assign(value)
