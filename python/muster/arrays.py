"""Runs collectives on NumPy arrays: what the faces for Keras, TensorFlow and JAX are made of. All block, and are collective over the process set.

Arrays need not be contiguous, nor in this machine's byte order. Results are new arrays in the caller's byte order.
Integers to be averaged are summed in 64 bits, and the averages truncate towards zero. Errors are those of muster.torch: ValueError for wrong arguments, CollectiveError on all ranks.
"""

from __future__ import annotations

import ctypes
import pickle
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
import _muster_native as native
from muster import world
from muster._barrier import barrier as barrier, join as join
from muster._pickling import dumps
from muster.process_sets import ProcessSet, global_process_set, number_of, root_within

Average, Sum, Adasum, Min, Max, Product = range(6)

_HOW = {Average: native.AVERAGE, Sum: native.SUM, Adasum: native.ADASUM, Min: native.MIN, Max: native.MAX, Product: native.PRODUCT}
_TYPES = {
    "float32": native.F32, "float64": native.F64, "float16": native.F16, "bfloat16": native.BF16,
    "int32": native.I32, "int64": native.I64, "uint8": native.U8, "int8": native.I8,
}  # fmt: skip


def _check(arrays: Sequence[np.ndarray], op: int) -> None:
    for array in arrays:
        if array.dtype.name not in _TYPES:
            raise ValueError(f"arrays of {array.dtype.name} cannot be reduced; convert to one of {', '.join(_TYPES)}")
    if op not in _HOW:
        raise ValueError(f"there is no reduction {op}; give Average, Sum, Adasum, Min, Max or Product")


def _is_floating(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _native(array: np.ndarray) -> np.ndarray:
    """The array in this machine's byte order: what travels."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _scaled(array: np.ndarray, factor: float, divisor: int = 1) -> np.ndarray:
    """array * factor / divisor. Integers are multiplied in double precision; they truncate towards zero."""
    if factor == 1 and divisor != 1 and not _is_floating(array):
        return array // divisor + ((array < 0) & (array % divisor != 0)).astype(array.dtype)
    factor /= divisor
    if factor == 1:
        return array
    if _is_floating(array):
        return (array * np.asarray(factor, dtype=array.dtype)).astype(array.dtype, copy=False)
    return np.trunc(array.astype(np.float64) * factor).astype(array.dtype)


def _summed(array: np.ndarray, op: int, prescale_factor: float) -> np.ndarray:
    """Returns what is reduced in place of the array. Integers to be averaged become 64 bits wide, since their sum need not fit where the average does."""
    array = _native(array)
    return _scaled(array.astype(np.int64) if op == Average and not _is_floating(array) else array, prescale_factor)


def grouped_allreduce(
    arrays: Sequence[np.ndarray],
    name: Optional[str] = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    wire: int = 0,
) -> List[np.ndarray]:
    """Reduces all of the arrays over the ranks, or none. `wire` is WIRE_F16 or WIRE_BF16 of the extension: how f32 travels."""
    number = number_of(process_set)
    comm = world.comm()
    arrays = [np.asarray(array) for array in arrays]
    _check(arrays, op)
    if not arrays:
        return []
    ranks = process_set.size()
    if ranks == 1:
        return [_scaled(_scaled(np.array(array), prescale_factor), postscale_factor) for array in arrays]
    name = world.named("grouped_allreduce", name, number)
    native_factors = all(_is_floating(array) for array in arrays) and prescale_factor != 0 and postscale_factor != 0
    how = _HOW[op]
    if not native_factors:
        how = native.SUM if op == Average else how
    ready = [np.asarray(_native(array) if native_factors else _summed(array, op, prescale_factor)) for array in arrays]
    sent = [np.ascontiguousarray(array).reshape(array.shape) for array in ready]
    received = [np.empty(array.shape, array.dtype) for array in sent]
    listed = [
        (f"{name}_{i}of{len(sent)}", a.ctypes.data, b.ctypes.data, _shape(a), _TYPES[a.dtype.name]) for i, (a, b) in enumerate(zip(sent, received), 1)
    ]
    factors = (prescale_factor, postscale_factor) if native_factors else (1.0, 1.0)
    wire = wire if all(array.dtype.name == "float32" for array in sent) and op in (Average, Sum) else 0
    comm.submit_group(
        native.ALLREDUCE, how, name, listed, prescale=factors[0], postscale=factors[1], set=number, compression=wire, error_feedback=1 if wire else 0,
        keep=(sent, received),
    ).wait()  # fmt: skip
    if not native_factors:
        received = [_scaled(array, postscale_factor, ranks if op == Average else 1) for array in received]
    return [np.asarray(array).astype(given.dtype, copy=False) for array, given in zip(received, arrays)]


def _shape(array: np.ndarray) -> Tuple[int, ...]:
    return array.shape if array.ndim <= 8 else (array.shape[0], array.size // max(1, array.shape[0]))


def allreduce(array: np.ndarray, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> np.ndarray:  # fmt: skip
    """Reduces the array over the ranks."""
    return grouped_allreduce([array], name, op, prescale_factor, postscale_factor, process_set)[0]


def _as_sent(array: np.ndarray) -> Tuple[np.ndarray, Tuple[int, ...], int]:
    """(contiguous array, shape, type) for what adds nothing; of other types the bytes."""
    array = np.ascontiguousarray(_native(array)).reshape(np.shape(array))
    kind = _TYPES.get(array.dtype.name)
    if kind is not None:
        return array, _shape(array), kind
    if array.dtype.hasobject:
        raise ValueError("arrays of Python objects cannot be sent; use broadcast_object or allgather_object")
    rows = array.shape[0] if array.ndim else 1
    return array, (rows, array.nbytes // max(1, rows)), native.U8


def _result(handle: native.Handle, like: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A new array, of this type, of the rows that came, which are such as those of `like`."""
    handle.wait()
    address, size = handle.result()
    row = like.shape[1:]
    made = np.empty(size // like.dtype.itemsize, like.dtype)
    if size:
        ctypes.memmove(made.ctypes.data, address, size)
        return made.reshape(-1, *row).astype(dtype, copy=False)
    return made.reshape(0 if 0 not in row else sum(handle.rows()), *row).astype(dtype, copy=False)


def allgather(array: np.ndarray, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> np.ndarray:
    """The rows of all ranks, one after the other; a scalar counts as one row. Ranks may have different numbers of rows."""
    return gather_rows(array, name, process_set)[0]


def gather_rows(array: np.ndarray, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Tuple[np.ndarray, List[int]]:
    """Works as `allgather`, and also returns the number of rows of each rank."""
    number = number_of(process_set)
    array = np.atleast_1d(array)
    name = world.named("allgather", name, number)
    sent, shape, kind = _as_sent(array)
    handle = world.comm().submit(native.ALLGATHER, 0, (name, sent.ctypes.data, 0, shape, kind), set=number, keep=sent)
    return _result(handle, sent, array.dtype), list(handle.rows())


def broadcast_all(arrays: Sequence[np.ndarray], root_rank: int, names: Optional[Sequence[str]] = None, process_set: ProcessSet = global_process_set) -> List[np.ndarray]:
    """The root's arrays, all under way at once. `root_rank` is its number in the world."""
    number = number_of(process_set)
    comm = world.comm()
    root = root_within(process_set, root_rank)
    handles, received = [], []
    try:
        for i, array in enumerate(arrays):
            name = world.named("broadcast", None if names is None else names[i], number)
            array = np.asarray(array)
            sent, shape, kind = _as_sent(array)
            made = np.empty(sent.shape, sent.dtype)
            tensor = (name, sent.ctypes.data, made.ctypes.data, shape, kind)
            handles.append(comm.submit(native.BROADCAST, root, tensor, set=number, keep=(sent, made)))
            received.append((made, array.dtype))
    finally:
        native.wait_many(handles)
    return [made.astype(dtype, copy=False) for made, dtype in received]


def broadcast(array: np.ndarray, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> np.ndarray:
    """The root's array."""
    return broadcast_all([array], root_rank, None if name is None else [name], process_set)[0]


def alltoall(
    array: np.ndarray, splits: Optional[Sequence[int]] = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Tuple[np.ndarray, List[int]]:
    """Sends splits[i] rows to the set's rank i (None: the same number to each). Returns (the rows that came, how many from each rank)."""
    number = number_of(process_set)
    name = world.named("alltoall", name, number)
    array = np.asarray(array)
    sent, shape, kind = _as_sent(array)
    rows = None if splits is None else [int(one) for one in splits]
    handle = world.comm().submit(native.ALLTOALL, 0, (name, sent.ctypes.data, 0, shape, kind), splits=rows, set=number, keep=sent)
    return _result(handle, sent, array.dtype), list(handle.rows())


def reducescatter(array: np.ndarray, name: Optional[str] = None, op: int = Average, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                  process_set: ProcessSet = global_process_set) -> np.ndarray:  # fmt: skip
    """Reduces the array, and gives each rank its share of the rows: the first `rows % size` ranks get one more."""
    number = number_of(process_set)
    array = np.asarray(array)
    _check([array], op)
    if op == Adasum or array.ndim == 0:
        raise ValueError("reducescatter takes arrays of rows, and no Adasum")
    name = world.named("reducescatter", name, number)
    is_mean_of_integers = op == Average and not _is_floating(array)
    sent = np.ascontiguousarray(_summed(array, op, prescale_factor))
    how = native.SUM if is_mean_of_integers else _HOW[op]
    tensor = (name, sent.ctypes.data, 0, _shape(sent), _TYPES[sent.dtype.name])
    handle = world.comm().submit(native.REDUCESCATTER, how, tensor, set=number, keep=sent)
    reduced = _result(handle, sent, sent.dtype)
    return _scaled(reduced, postscale_factor, process_set.size() if is_mean_of_integers else 1).astype(array.dtype, copy=False)


def broadcast_object(obj: Any = None, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """The root's object, which must be such as can be pickled; the others' are not looked at."""
    name = name or "object"
    is_root = world.rank() == root_rank
    data = np.frombuffer(dumps(obj), np.uint8) if is_root else np.empty(0, np.uint8)
    size = broadcast(np.array([data.size]), root_rank, name + ".size", process_set)[0]
    data = broadcast(data if is_root else np.empty(size, np.uint8), root_rank, name + ".data", process_set)
    return obj if is_root else pickle.loads(data.tobytes())


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """Every rank's object, in the order of the ranks."""
    data, sizes = gather_rows(np.frombuffer(dumps(obj), np.uint8), (name or "object") + ".data", process_set)
    ends = np.cumsum(sizes)
    return [pickle.loads(data[end - size : end].tobytes()) for size, end in zip(sizes, ends)]
