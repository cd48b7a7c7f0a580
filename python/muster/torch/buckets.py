"""Cuts a model's gradients into buckets and lays each bucket into memory that the ranks of a node share, where it is reduced without a copy."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import _muster_native as native

from muster.torch._tensors import TYPES

#: A bucket is closed when it holds at least so many bytes. The first is small, so that the exchange begins while most of the backward pass is to come.
FIRST_BUCKET_BYTES = 1 << 20
BUCKET_BYTES = 8 << 20

_ALIGNMENT = 64
_MOST_DIMENSIONS = 8
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def sizes_from_environment() -> Tuple[int, int]:
    """(bytes of the first bucket, of the others): MUSTER_BUCKET_BYTES where it is set ("4194304" or "1048576,4194304"), else what was measured best here.

    ValueError for anything else.
    """
    text = os.environ.get("MUSTER_BUCKET_BYTES", "")
    if not text:
        return FIRST_BUCKET_BYTES, BUCKET_BYTES
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or min(numbers) < 1:
        raise ValueError(f'MUSTER_BUCKET_BYTES="{text}" is not one or two numbers of bytes; give for example "8388608" or "1048576,8388608"')
    return min(numbers[0], numbers[-1]), numbers[-1]


class Gradient(NamedTuple):
    """Holds what the ranks must agree on about one parameter. A plain value."""

    name: str
    shape: Tuple[int, ...]
    dtype: torch.dtype
    device: str  #: kind of device
    order: Tuple[int, ...]  #: its dimensions, the one with the largest stride first; () if that is their own order
    group: int = -1  #: number of the group that the user put it into, or -1

    def __str__(self) -> str:
        order = f", order in memory {list(self.order)}" if self.order else ""
        group = f", in group {self.group}" if self.group >= 0 else ""
        return f'"{self.name}" {list(self.shape)} {str(self.dtype).replace("torch.", "")} on {self.device}{order}{group}'


def order_in_memory(shape: Sequence[int], strides: Sequence[int]) -> Optional[Tuple[int, ...]]:
    """The dimensions by falling stride, () if they are in order; None if the tensor has holes or overlaps itself."""
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], i) if shape[i] != 1 else (-max(strides, default=0), i))
    expected = 1
    for i in reversed(order):
        if shape[i] == 1:
            continue
        if strides[i] != expected:
            return None
        expected *= shape[i]
    moved = [i for i in order if shape[i] != 1]
    return tuple(order) if moved != sorted(moved) else ()


def describe(name: str, parameter: torch.Tensor, group: int = -1) -> Gradient:
    """Returns what the gradient of this parameter will be: laid out as the parameter is where that has no holes, else row by row."""
    order = order_in_memory(parameter.shape, parameter.stride()) if parameter.layout is torch.strided else ()
    return Gradient(name, tuple(parameter.shape), parameter.dtype, parameter.device.type, order or (), group)


def plan_buckets(gradients: Sequence[Gradient], element_sizes: Sequence[int], first_bytes: int, bucket_bytes: int) -> List[List[int]]:
    """Returns which gradients go together: lists of indices into `gradients`. Pure, and the same wherever its arguments are.

    Begins with the last gradient, since backward does. A bucket holds one type on one kind of device. A group of the user's becomes one bucket for each of
    its types. Gradients without elements are in no bucket.
    """
    closed: List[List[int]] = []
    opened: Dict[tuple, Tuple[List[int], int]] = {}
    begun: set = set()  # what has closed a bucket
    grouped: Dict[tuple, List[int]] = {}
    for index in reversed(range(len(gradients))):
        gradient = gradients[index]
        elements = math.prod(gradient.shape)
        if elements == 0:
            continue
        key = (gradient.group, gradient.dtype, gradient.device)
        if gradient.group >= 0:
            if key not in grouped:
                grouped[key] = []
                closed.append(grouped[key])
            grouped[key].append(index)
            continue
        members, size = opened.setdefault(key, ([], 0))
        members.append(index)
        size += elements * element_sizes[index]
        opened[key] = (members, size)
        if size >= (bucket_bytes if key in begun else first_bytes):
            begun.add(key)
            closed.append(members)
            del opened[key]
    closed.extend(members for members, _ in opened.values())
    return closed


def shared_bytes(comm: native.Comm, size: int) -> torch.Tensor:
    """A tensor of bytes, zeroed, in memory that the ranks of a node share. It keeps its memory, beyond the communicator's end too."""
    memory = comm.alloc(size)
    block = (ctypes.c_char * size).from_address(memory.address)
    block.memory = memory
    return torch.frombuffer(block, dtype=torch.uint8)


def _tensor_at(storage, byte: int, gradient: Gradient) -> torch.Tensor:
    """A separate tensor, no view, in that storage: some functions refuse to work in place on views."""
    strides = [0] * len(gradient.shape)
    step = 1
    for i in reversed(gradient.order or range(len(gradient.shape))):
        strides[i] = step
        step *= gradient.shape[i]
    made = torch.empty(0, dtype=gradient.dtype, device=storage.device)
    return made.set_(storage, byte // made.element_size(), gradient.shape, strides)


class Bucket:
    """Gradients that lie one behind the other and are reduced by one request.

    Attributes:
        name: of the request; holds the name of the parameter whose gradient comes first.
        members: indices of its gradients.
        views: their tensors within the bucket.
        flat: all of them, one-dimensional.
        pending: how many have not come yet; counted by the owner.
        handle: of the request under way, or None.
    """

    __slots__ = ("name", "members", "views", "flat", "slots", "pending", "handle", "stream_of", "_tensors", "_group")

    def __init__(self, name: str, members: List[int], gradients: Sequence[Gradient], block: torch.Tensor, offset: int) -> None:
        self.name = name
        self.members = members
        self.views: List[torch.Tensor] = []
        self.slots: list = []
        self.pending = len(members)
        self.handle: Optional[native.Handle] = None
        self.stream_of = None if block.device.type == "cpu" else block.device
        self._group: Optional[native.Group] = None
        self._tensors = []
        begin = offset
        storage = block.untyped_storage() if hasattr(block, "untyped_storage") else block.storage().untyped()
        for index in members:
            gradient = gradients[index]
            view = _tensor_at(storage, offset, gradient)
            shape = tuple(gradient.shape[i] for i in gradient.order) if gradient.order else gradient.shape
            if gradient.dtype.is_complex:
                shape = (*shape, 2)
            elements = view.numel() * (2 if gradient.dtype.is_complex else 1)
            name = gradient.name + (f" (order in memory {list(gradient.order)})" if gradient.order else "")
            address = view.data_ptr()
            kind = TYPES[_REAL.get(gradient.dtype, gradient.dtype)]
            self._tensors.append((name, address, address, shape if len(shape) <= _MOST_DIMENSIONS else (elements,), kind))
            self.views.append(view)
            offset += view.numel() * view.element_size()
        self.flat = block[begin:offset]

    def prepare(self, comm: native.Comm, how: int, prescale: float, postscale: float, process_set: int, wire: int) -> None:
        """Collective over the set, blocking: agrees on the bucket once, so that starting it costs what one tensor costs."""
        memory = native.HOST if self.stream_of is None else native.DEVICE
        self._group = comm.prepare(
            how, self.name, self._tensors, prescale=prescale, postscale=postscale, set=process_set, compression=wire, error_feedback=2 if wire else 0,
            memory=memory, keep=self.flat,
        )  # fmt: skip

    def start(self) -> None:
        """Has it reduced where it lies. Nothing may touch it until `finish`."""
        if self.stream_of is None:
            self.handle = self._group.start()
        else:
            self.handle = self._group.start(torch.cuda.current_stream(self.stream_of).cuda_stream)

    def finish(self) -> None:
        """Blocks until it is reduced. Raises what it failed of."""
        handle, self.handle = self.handle, None
        handle.wait()


def size_in_bytes(gradient: Gradient) -> int:
    """Returns the size of all its elements."""
    return math.prod(gradient.shape) * torch.empty(0, dtype=gradient.dtype).element_size()


def lay_out(comm: native.Comm, plan: Sequence[List[int]], gradients: Sequence[Gradient], devices: Sequence[torch.device], named) -> List[Bucket]:
    """The buckets of a plan, in one block of memory for each device; their names are made by `named(text)`. Not collective."""
    sizes: Dict[torch.device, int] = {}
    places = []
    for members in plan:
        device = devices[members[0]]
        begin = sizes.get(device, 0)
        places.append(begin)
        end = begin + sum(size_in_bytes(gradients[index]) for index in members)
        sizes[device] = (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    blocks = {
        device: shared_bytes(comm, size) if device.type == "cpu" else torch.zeros(size, dtype=torch.uint8, device=device) for device, size in sizes.items()
    }
    made = []
    for members, begin in zip(plan, places):
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        made.append(Bucket(named(gradients[members[0]].name + more), members, gradients, blocks[devices[members[0]]], begin))
    return made
