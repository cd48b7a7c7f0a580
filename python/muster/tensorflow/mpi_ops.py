"""Runs collectives on TensorFlow's tensors, eager or in a tf.function. All block, and are collective over the process set; all are differentiable."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

import tensorflow as tf

from muster import arrays, world
from muster._shared import *  # noqa: F401,F403
from muster.arrays import Adasum, Average, Max, Min, Product, Sum, barrier, join
from muster.process_sets import number_of
from muster.tensorflow._calls import call
from muster.tensorflow.compression import Compression

Tensor = Union[tf.Tensor, tf.IndexedSlices]


def op_of(op: Optional[int], average: Optional[bool]) -> int:
    """The reduction; `average` is the older way to say it. ValueError for both."""
    if average is None:
        return Average if op is None else op
    if op is not None:
        raise ValueError("give op or average, not both")
    return Average if average else Sum


def _named(kind: str, name: Optional[str], process_set: ProcessSet) -> str:
    """Names are given when the call is written, so that a tf.function uses the same in each of its runs."""
    return world.nameless(kind, number_of(process_set)) if name is None else name


def _average(tensor: tf.Tensor, process_set: ProcessSet) -> tf.Tensor:
    return allreduce(tensor, op=Average, process_set=process_set)


def _allreduce_sparse(slices: tf.IndexedSlices, op: int, name: Optional[str], process_set: ProcessSet) -> tf.IndexedSlices:
    """The slices of all ranks, one after the other; repeated ones are added by whoever uses them."""
    if op not in (Average, Sum):
        raise ValueError("tf.IndexedSlices can be reduced with Average or Sum; make the tensor dense for others")
    name = _named("allreduce_sparse", name, process_set)
    values = allgather(slices.values, name + ".values", process_set=process_set)
    indices = allgather(slices.indices, name + ".indices", process_set=process_set)
    if op == Average:
        values = values / tf.cast(process_set.size(), values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def allreduce(
    tensor: Tensor,
    average: Optional[bool] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Tensor:
    """Reduces the tensor over the ranks; of tf.IndexedSlices all ranks' are gathered. Average by default.

    device_dense, device_sparse and ignore_name_scope are taken for the sake of scripts that give them.
    """
    op = op_of(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        return _allreduce_sparse(tensor, op, name, process_set)
    return grouped_allreduce([tensor], compression=compression, op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                             name=_named("allreduce", name, process_set), process_set=process_set)[0]  # fmt: skip


def grouped_allreduce(
    tensors: Sequence[Tensor],
    average: Optional[bool] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> List[tf.Tensor]:
    """Reduces all of the tensors, or none, as one request."""
    op = op_of(op, average)
    tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
    if not tensors:
        return []
    name = _named("grouped_allreduce", name, process_set)

    @tf.custom_gradient
    def reduce(*given):
        def on_arrays(*values):
            return arrays.grouped_allreduce(values, name, op, prescale_factor, postscale_factor, process_set, compression.wire)

        def gradient(*upstream):
            return grouped_allreduce(upstream, compression=compression, op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                                     name=name + ".gradient", process_set=process_set)  # fmt: skip

        return call(on_arrays, given, [one.dtype for one in given], [one.shape for one in given]), gradient

    return list(reduce(*tensors))


def allgather(tensor: Tensor, name: Optional[str] = None, ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set) -> tf.Tensor:
    """The rows of all ranks, one after the other; a scalar counts as one row."""
    name = _named("allgather", name, process_set)
    tensor = tf.convert_to_tensor(tensor)
    shape = tf.TensorShape([None]).concatenate(tensor.shape[1:]) if tensor.shape.rank is not None else None

    @tf.custom_gradient
    def gather(given):
        def on_arrays(value):
            gathered, rows = arrays.gather_rows(value, name, process_set)
            return gathered, rows

        gathered, rows = call(on_arrays, [given], [given.dtype, tf.int64], [shape, [None]])

        def gradient(upstream):
            mine = process_set.rank()
            begin = tf.reduce_sum(rows[:mine])
            own = _average(upstream, process_set)[begin : begin + rows[mine]]
            return tf.reshape(own, tf.shape(given))

        return gathered, gradient

    return gather(tensor)


def grouped_allgather(tensors: Sequence[Tensor], name: Optional[str] = None, ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set) -> List[tf.Tensor]:
    """The rows of all ranks of each tensor, one tensor after the other."""
    name = _named("grouped_allgather", name, process_set)
    return [allgather(tensor, f"{name}_{i}", process_set=process_set) for i, tensor in enumerate(tensors)]


def broadcast(tensor: Tensor, root_rank: int, name: Optional[str] = None, ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set) -> tf.Tensor:
    """The root's tensor. `root_rank` is its number in the world."""
    name = _named("broadcast", name, process_set)
    tensor = tf.convert_to_tensor(tensor)

    @tf.custom_gradient
    def send(given):
        def gradient(upstream):
            averaged = _average(upstream, process_set)
            return averaged if rank() == root_rank else tf.zeros_like(averaged)

        sent = call(lambda value: [arrays.broadcast(value, root_rank, name, process_set)], [given], [given.dtype], [given.shape])
        return sent[0], gradient

    return send(tensor)


def broadcast_(variables: Sequence[tf.Variable], root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[tf.Variable]:
    """Assigns the root's values to the variables, and returns them."""
    name = _named("broadcast_", name, process_set)
    for i, variable in enumerate(variables):
        variable.assign(broadcast(variable, root_rank, f"{name}_{i}", process_set=process_set))
    return list(variables)


def alltoall(
    tensor: Tensor, splits: Any = None, name: Optional[str] = None, ignore_name_scope: bool = False, process_set: ProcessSet = global_process_set
) -> Union[tf.Tensor, Tuple[tf.Tensor, tf.Tensor]]:
    """Sends splits[i] rows to the set's rank i. With splits: (the rows that came, how many from each rank), else the rows alone."""
    name = _named("alltoall", name, process_set)
    tensor = tf.convert_to_tensor(tensor)
    given_splits = splits is not None
    shape = tf.TensorShape([None]).concatenate(tensor.shape[1:])
    splits = tf.convert_to_tensor(splits if given_splits else [], tf.int32)

    @tf.custom_gradient
    def exchange(given):
        def on_arrays(value, rows):
            received, counts = arrays.alltoall(value, rows.tolist() if given_splits else None, name, process_set)
            return received, counts

        received, counts = call(on_arrays, [given, splits], [given.dtype, tf.int32], [shape, [None]])

        def gradient(upstream, _=None):
            return alltoall(upstream, counts, name + ".gradient", process_set=process_set)[0]

        return (received, counts), gradient

    received, counts = exchange(tensor)
    return (received, counts) if given_splits else received


def reducescatter(
    tensor: Tensor,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
) -> tf.Tensor:
    """Reduces the tensor, and gives each rank its share of the rows; the first `rows % size` ranks get one more."""
    name = _named("reducescatter", name, process_set)
    tensor = tf.convert_to_tensor(tensor)
    shape = tf.TensorShape([None]).concatenate(tensor.shape[1:])

    @tf.custom_gradient
    def scatter(given):
        def gradient(upstream):
            factor = (process_set.size() if op == Sum else 1) * prescale_factor * postscale_factor
            return allgather(upstream * tf.cast(factor, upstream.dtype), name + ".gradient", process_set=process_set)

        scattered = call(lambda value: [arrays.reducescatter(value, name, op, prescale_factor, postscale_factor, process_set)], [given], [given.dtype], [shape])
        return scattered[0], gradient

    return scatter(tensor)


def grouped_reducescatter(tensors: Sequence[Tensor], op: int = Average, name: Optional[str] = None, process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0, postscale_factor: float = 1.0, **ignored: Any) -> List[tf.Tensor]:  # fmt: skip
    """Reduces and scatters each tensor, one after the other."""
    name = _named("grouped_reducescatter", name, process_set)
    return [reducescatter(tensor, op=op, name=f"{name}_{i}", process_set=process_set, prescale_factor=prescale_factor, postscale_factor=postscale_factor)
            for i, tensor in enumerate(tensors)]  # fmt: skip


def rank_op(name: Optional[str] = None) -> tf.Tensor:
    """Number of this rank, looked up when the graph runs."""
    return call(lambda: [rank()], [], [tf.int32], [[]])[0]


def local_rank_op(name: Optional[str] = None) -> tf.Tensor:
    """Number of this rank on its node, looked up when the graph runs."""
    return call(lambda: [local_rank()], [], [tf.int32], [[]])[0]


def size_op(process_set_id: int = 0, name: Optional[str] = None) -> tf.Tensor:
    """Number of ranks, looked up when the graph runs."""
    return call(lambda: [world.comm().place_in_set(process_set_id)[1]], [], [tf.int32], [[]])[0]


def local_size_op(name: Optional[str] = None) -> tf.Tensor:
    """Number of ranks on this node, looked up when the graph runs."""
    return call(lambda: [local_size()], [], [tf.int32], [[]])[0]
