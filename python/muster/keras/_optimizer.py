"""Makes an optimizer of Keras average its gradients over the ranks: Keras 3 on PyTorch, TensorFlow or JAX, and tf_keras."""

from __future__ import annotations

import itertools
from typing import Any, List, Optional, Sequence

from muster import arrays
from muster.errors import held
from muster.keras._backend import backend_of, is_keras3
from muster.process_sets import ProcessSet

_numbers = itertools.count()


class Reduction:
    """Says how gradients are reduced; called with lists of the backend's tensors, in which None means that there is no gradient. One group of requests a call."""

    def __init__(self, backend: str, op: int, predivide: float, compression: Any, process_set: ProcessSet, factor: float = 1.0) -> None:
        self.backend = backend
        self.process_set = process_set
        self.compression = compression
        self.name = f"DistributedOptimizer.{next(_numbers)}"
        self.op, self.before, self.after = op, factor, 1.0
        if predivide != 1.0:
            if op != arrays.Average:
                raise ValueError("gradient_predivide_factor goes with op=Average only; leave it out")
            self.before, self.after = factor / predivide, predivide
        self.factor = factor
        self.local_layers: Sequence[Any] = ()  # whose gradients are not reduced
        self.local_variables: List[Any] = []
        self.scales_local = True  # divides those by the number of ranks

    def __call__(self, gradients: Sequence[Any], variables: Sequence[Any] = ()) -> List[Any]:
        """`variables` are those that the gradients are of."""
        own = {id(one) for layer in self.local_layers for one in layer.trainable_weights} | {id(one) for one in self.local_variables}
        local = {i for i, variable in enumerate(variables) if id(variable) in own}
        result = self._reduce([None if i in local else gradient for i, gradient in enumerate(gradients)])
        by = self.factor / self.process_set.size() if self.scales_local and self.process_set.included() else self.factor
        for i in local:
            result[i] = _scaled(gradients[i], by)
        return result

    def _reduce(self, gradients: Sequence[Any]) -> List[Any]:
        if not self.process_set.included() or self.process_set.size() == 1:
            factor = self.before * self.after
            return [gradient if gradient is None or factor == 1 else gradient * factor for gradient in gradients]
        given = [i for i, gradient in enumerate(gradients) if gradient is not None]
        reduced = getattr(self, "_by_" + self.backend)([gradients[i] for i in given])
        result: List[Any] = [None] * len(gradients)
        for i, gradient in zip(given, reduced):
            result[i] = gradient
        return result

    def _by_torch(self, gradients: List[Any]) -> List[Any]:
        from muster import torch as hvd

        return hvd.grouped_allreduce(gradients, name=self.name, op=self.op, prescale_factor=self.before, postscale_factor=self.after,
                                     compression=self._of_torch(), process_set=self.process_set)  # fmt: skip

    def _of_torch(self) -> Any:
        from muster.torch import Compression

        return getattr(Compression, getattr(self.compression, "kind", "none"), self.compression)

    def _on_arrays(self, *values: Any) -> List[Any]:
        """Reduces arrays of whatever converts to NumPy's."""
        wire = getattr(self.compression, "wire", 0)
        return arrays.grouped_allreduce(values, self.name, self.op, self.before, self.after, self.process_set, wire)

    def _by_tensorflow(self, gradients: List[Any]) -> List[Any]:
        import tensorflow as tf

        from muster.tensorflow._calls import call

        dense = [tf.convert_to_tensor(gradient) for gradient in gradients]  # of tf.IndexedSlices too
        return call(self._on_arrays, dense, [one.dtype for one in dense], [one.shape for one in dense])

    def _by_jax(self, gradients: List[Any]) -> List[Any]:
        import jax
        from jax.experimental import io_callback

        shapes = tuple(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in gradients)
        return list(io_callback(held(lambda *values: tuple(self._on_arrays(*values))), shapes, *gradients, ordered=True))


def _scaled(gradient: Any, by: float) -> Any:
    if gradient is None or by == 1:
        return gradient
    if hasattr(gradient, "indices") and hasattr(gradient, "dense_shape"):  # tf.IndexedSlices
        return type(gradient)(gradient.values * by, gradient.indices, gradient.dense_shape)
    return gradient * by


class _LocalVariables:
    """Holds what both kinds of distributed optimizers have."""

    def register_local_var(self, variable: Any) -> None:
        """The gradient of this variable is this rank's own: it is not reduced."""
        self._reduction.local_variables.append(variable)


class _DistributedApply(_LocalVariables):
    """Serves Keras 3."""

    def apply(self, grads, trainable_variables=None):
        variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
        return super().apply(self._reduction(grads, variables), trainable_variables)


class _DistributedApplyGradients(_LocalVariables):
    """Serves Keras 2."""

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        reduced = self._reduction([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
        return super().apply_gradients([(gradient, variable) for gradient, (_, variable) in zip(reduced, pairs)], *args, **kwargs)


def distributed_class(optimizer_class: type) -> type:
    """A class of the same name, derived from the optimizer's, whose `_reduction` sees the gradients first."""
    if issubclass(optimizer_class, (_DistributedApply, _DistributedApplyGradients)):
        raise ValueError(f"this {optimizer_class.__name__} is a DistributedOptimizer already; wrap it once")
    first = _DistributedApply if is_keras3(optimizer_class) else _DistributedApplyGradients
    return type(optimizer_class.__name__, (first, optimizer_class), {"__module__": optimizer_class.__module__})


def distribute(optimizer: Any, reduction: Reduction) -> Any:
    """Makes this very optimizer, with the state that it has, a distributed one; returns it."""
    optimizer.__class__ = distributed_class(type(optimizer))
    optimizer._reduction = reduction
    return optimizer


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = arrays.Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = arrays.global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """An optimizer of the same class and settings, without state, that reduces gradients over the ranks before it applies them.

    All gradients of a step are one group of requests. On TensorFlow it is a tf.py_function: compile with jit_compile=False. A rank that is not in the process
    set gets a plain optimizer. Sparse gradients (tf.IndexedSlices) are made dense.

    Args:
        optimizer: of Keras 3 on any backend, or of tf_keras.
        compression: `Compression.none`, `.fp16` or `.bf16`.
        op: Average, Sum or Adasum.
        backward_passes_per_step: steps between updates. Keras 3 accumulates them; they are reduced in every step all the same.
        average_aggregated_gradients: whether these steps are averaged; else summed.
        gradient_predivide_factor: with op=Average: gradients are divided by it before they are summed, and the rest of the way behind.
        scale_local_gradients: whether the gradients of local variables (`register_local_var`) are divided by the number of ranks.
        name, device_dense, device_sparse, sparse_as_dense, num_groups, groups: taken for the sake of scripts that give them; no effect.

    Raises:
        ValueError: wrong arguments; more than one backward pass with tf_keras or with Adasum.
    """
    kind = type(optimizer)
    config = optimizer.get_config()
    factor = 1.0
    if backward_passes_per_step > 1:
        if not is_keras3(kind) or op == arrays.Adasum:
            raise ValueError("backward_passes_per_step > 1 needs Keras 3, and another reduction than Adasum; use larger batches")
        config["gradient_accumulation_steps"] = backward_passes_per_step  # Keras averages over them
        factor = 1.0 if average_aggregated_gradients else float(backward_passes_per_step)
    reduction = Reduction(backend_of(kind), op, gradient_predivide_factor, compression, process_set, factor)
    reduction.scales_local = scale_local_gradients
    return distribute(kind.from_config(config), reduction)


def PartialDistributedOptimizer(optimizer: Any, *args: Any, local_layers: Any = None, **options: Any) -> Any:
    """A DistributedOptimizer that leaves the gradients of some layers as they are on each rank, except for their scale.

    Args:
        optimizer, args, options: as DistributedOptimizer takes them.
        local_layers: a layer, or several; they may be built later.
    """
    layers = [] if local_layers is None else local_layers if isinstance(local_layers, (list, tuple)) else [local_layers]
    if not all(hasattr(layer, "trainable_weights") for layer in layers):
        raise ValueError("local_layers must be layers of Keras")
    made = DistributedOptimizer(optimizer, *args, **options)
    made._reduction.local_layers = list(layers)
    return made
