"""Turns memory into arrays of torch, NumPy and JAX, and into memoryviews, without importing what is not asked for."""

from __future__ import annotations

import ctypes
import importlib
import math
from types import ModuleType
from typing import Any, NamedTuple, Sequence, Tuple

from .errors import UnavailableError, UsageError


class Element(NamedTuple):
    name: str  #: NumPy's and torch's name
    code: str  #: of the module struct
    size: int  #: bytes


#: In the order of MUSTER_IO_U8 … MUSTER_IO_F64.
ELEMENTS = tuple(
    Element(*each)
    for each in (
        ("uint8", "B", 1),
        ("int8", "b", 1),
        ("uint16", "H", 2),
        ("int16", "h", 2),
        ("uint32", "I", 4),
        ("int32", "i", 4),
        ("uint64", "Q", 8),
        ("int64", "q", 8),
        ("float32", "f", 4),
        ("float64", "d", 8),
    )
)
U8, U16, U32, F32 = ELEMENTS[0], ELEMENTS[2], ELEMENTS[4], ELEMENTS[8]


def import_for(kind: str) -> ModuleType:
    """torch or NumPy. Raises UnavailableError where it is not installed."""
    try:
        return importlib.import_module(kind)
    except ImportError as problem:
        raise UnavailableError(f'as_="{kind}" needs the package {kind}: {problem}; install it, or choose another as_') from None


def numpy_is_there() -> bool:
    try:
        importlib.import_module("numpy")
    except ImportError:
        return False
    return True


def memory_at(address: int, size_bytes: int, owner: object) -> Any:
    """The bytes at an address as a buffer that keeps `owner` alive."""
    memory: Any = (ctypes.c_uint8 * size_bytes).from_address(address)
    memory.owner = owner
    return memory


def torch_type(torch: ModuleType, element: Element) -> Any:
    found = getattr(torch, element.name, None)
    if found is None:
        raise UsageError(f'this torch ({torch.__version__}) has no type {element.name}, which the file holds; give as_="numpy"')
    return found


def to_array(kind: str, memory: Any, element: Element, shape: Sequence[int]) -> Any:
    """A view of `memory` (a writable buffer), which it keeps alive. `kind` is torch, numpy or buffer."""
    if kind == "torch":
        torch = import_for("torch")
        dtype = torch_type(torch, element)
        return torch.frombuffer(memory, dtype=dtype).view(*shape) if math.prod(shape) else torch.empty(tuple(shape), dtype=dtype)
    if kind == "numpy":
        return import_for("numpy").frombuffer(memory, dtype=element.name).reshape(shape)
    view: Any = memoryview(memory).cast("B")
    return view.cast(element.code, tuple(shape)) if math.prod(shape) else view.cast(element.code)


def for_losses(torch: ModuleType, labels: Any) -> Any:
    """Labels as torch's losses want them, in separate memory: classes as int64, targets as float32. `labels` is of uint8, of int16 and int32 that stand for
    unsigned numbers, or of float32."""
    if labels.dtype == torch.float32:
        return labels.clone()
    wide = labels.to(torch.int64)
    if labels.dtype == torch.uint8:
        return wide
    return wide & (0xFFFF if labels.dtype == torch.int16 else 0xFFFFFFFF)


def signed_for_torch(element: Element) -> Element:
    """The signed type of the same number of bytes: not every torch has uint16 and uint32."""
    return {U16: ELEMENTS[3], U32: ELEMENTS[5]}.get(element, element)


def check_choice(name: str, value: str, allowed: Tuple[str, ...]) -> str:
    if value not in allowed:
        raise UsageError(f"{name} is {value!r}; give one of {', '.join(allowed)}")
    return value
