"""Tells the extension where a tensor lies and what it holds, and makes tensors of its results.

Collectives read and write contiguous memory. A tensor that is not contiguous is copied before and, where it is the output, after.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Sequence, Tuple

import torch
import _muster_native as native
from muster._torch_types import TYPES, plain as plain

native.know_tensors([(dtype, number, dtype.is_floating_point) for dtype, number in TYPES.items()], torch.strided)

#: What is moved, and not reduced.
_MOVED = {**TYPES, torch.bool: native.BOOL, torch.int16: native.I16}
if hasattr(torch, "uint16"):  # since torch 2.3
    _MOVED[torch.uint16] = native.U16

_MOST_DIMENSIONS = 8


class Place(NamedTuple):
    """Where tensors lie, as `submit` wants to know it."""

    memory: int
    stream: int


_HOST = Place(native.HOST, 0)


def place_of(tensor: torch.Tensor) -> Place:
    """Returns its kind of memory, and of a tensor on a GPU the current stream there. ValueError for what is neither. (On a GPU: not tried yet.)"""
    if tensor.layout is not torch.strided:
        raise ValueError(f"a tensor of the layout {tensor.layout} has no one memory; use sparse_allreduce_async, or to_dense()")
    kind = tensor.device.type
    if kind == "cpu":
        return _HOST
    if kind == "cuda":
        return Place(native.DEVICE, torch.cuda.current_stream(tensor.device).cuda_stream)
    raise ValueError(f"a tensor on {tensor.device} cannot be reached; move it to the CPU or to a CUDA device")


def place_of_all(tensors: Sequence[torch.Tensor]) -> Place:
    """Their common place. ValueError where some lie elsewhere."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise ValueError(f"the tensors of a group lie on {', '.join(sorted(map(str, devices)))}; make a group for each device")
    places = [place_of(tensor) for tensor in tensors]
    return places[0] if places else _HOST


def type_of(tensor: torch.Tensor) -> int:
    """Returns the type in which it is reduced; bool, of which _reductions.plan lets minimum and maximum pass, as a byte."""
    return TYPES.get(tensor.dtype, native.U8)


def shape_of(tensor: torch.Tensor) -> Sequence[int]:
    """Returns its shape, with more than 8 dimensions made one after the first."""
    shape = tensor.shape
    return shape if len(shape) <= _MOST_DIMENSIONS else (shape[0], tensor.numel() // max(1, shape[0]))


def as_bytes(tensor: torch.Tensor) -> Tuple[Sequence[int], int]:
    """(shape, type) for a collective that adds nothing. A type that muster does not know goes as bytes, with a dimension more."""
    kind = _MOVED.get(tensor.dtype)
    if kind is not None:
        return shape_of(tensor), kind
    shape = (*tensor.shape, tensor.element_size())
    return shape if len(shape) <= _MOST_DIMENSIONS else (shape[0], tensor.numel() * tensor.element_size() // max(1, shape[0])), native.U8


class _OnDevice:
    """Memory of a result, for torch to read; keeps the result."""

    def __init__(self, result: native.Handle, address: int, size: int) -> None:
        self._result = result
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 2}


def of_result(result: native.Handle, like: torch.Tensor, *index: int) -> torch.Tensor:
    """A new tensor of the rows in a result; type, device and the shape of a row are those of `like`. The index is that in a group."""
    address, size = result.result(*index)
    row = like.shape[1:]
    rows = size // like.element_size() // max(1, row.numel()) if row.numel() else sum(result.rows(*index))
    made = torch.empty((rows, *row), dtype=like.dtype, device=like.device)
    if size and like.device.type == "cpu":
        ctypes.memmove(made.data_ptr(), address, size)
    elif size:
        made.view(-1).view(torch.uint8).copy_(torch.as_tensor(_OnDevice(result, address, size), device=like.device))
    return made
