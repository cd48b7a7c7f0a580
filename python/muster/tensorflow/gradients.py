"""Averages the gradients of a tf.GradientTape over the ranks: `DistributedGradientTape`."""

from __future__ import annotations

from typing import Any, Iterable, Optional

import tensorflow as tf

from muster.keras._optimizer import Reduction
from muster.process_sets import ProcessSet, global_process_set
from muster.tensorflow.compression import Compression
from muster.tensorflow.mpi_ops import Average


class _DistributedTape:
    """A tape's `gradient`, reduced; everything else is the tape's own."""

    def __init__(self, tape: tf.GradientTape, reduction: Reduction, local: Iterable[Any], scale_local: bool) -> None:
        self._tape = tape
        self._reduction = reduction
        self._local = {id(variable) for variable in local}
        self._scale_local = scale_local

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def __enter__(self) -> "_DistributedTape":
        self._tape.__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        self._tape.__exit__(*reason)

    def register_local_source(self, source: Any) -> None:
        """Leaves a variable's gradient to each rank."""
        self._local.add(id(source))

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = self._tape.gradient(target, sources, *args, **kwargs)
        flat, listed = tf.nest.flatten(gradients), tf.nest.flatten(sources)
        is_local = [id(source) in self._local for source in listed]
        reduced = iter(self._reduction([one for one, local in zip(flat, is_local) if not local]))
        size = self._reduction.process_set.size() if self._scale_local and any(is_local) else 1
        result = [one if local and (one is None or size == 1) else one / size if local else next(reduced) for one, local in zip(flat, is_local)]
        return tf.nest.pack_sequence_as(gradients, result)


def DistributedGradientTape(
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """A tape whose `gradient` is reduced over the ranks: all of a call's gradients as one group of requests. tf.IndexedSlices are made dense.

    device_dense, device_sparse, sparse_as_dense, num_groups and groups are taken for the sake of scripts that give them.
    """
    reduction = Reduction("tensorflow", op, gradient_predivide_factor, compression, process_set)
    reduction.name = "DistributedGradientTape"  # a tape is made for each step: one name for all, of which there is one at a time
    return _DistributedTape(gradtape, reduction, (), scale_local_gradients)


def PartialDistributedGradientTape(
    gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "", compression: Any = Compression.none, sparse_as_dense: bool = False,
    op: int = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
    local_layers: Optional[Any] = None, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Works as `DistributedGradientTape`, but each rank keeps its gradients of these layers, divided by the number of ranks unless `scale_local_gradients` is False."""
    tape = DistributedGradientTape(gradtape, compression=compression, op=op, gradient_predivide_factor=gradient_predivide_factor, process_set=process_set,
                                   scale_local_gradients=scale_local_gradients)  # fmt: skip
    layers = [] if local_layers is None else local_layers if isinstance(local_layers, (list, tuple)) else [local_layers]
    for layer in layers:
        for variable in layer.trainable_weights:
            tape.register_local_source(variable)
    return tape
