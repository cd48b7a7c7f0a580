"""The numbers that the native module has for torch's types, and tensors as it reads them."""

from __future__ import annotations

from typing import Callable, Sequence, Set, Tuple

import torch
import _muster_native as native

#: What muster computes with.
TYPES = {
    torch.float32: native.F32,
    torch.float64: native.F64,
    torch.float16: native.F16,
    torch.bfloat16: native.BF16,
    torch.int32: native.I32,
    torch.int64: native.I64,
    torch.uint8: native.U8,
    torch.int8: native.I8,
}


def has_plain_memory(tensor: torch.Tensor) -> bool:
    """Returns whether its memory holds its elements as they are, one after the other: no strides, no conjugation or negation that is still to come."""
    return tensor.is_contiguous() and not tensor.is_neg() and not (tensor.dtype.is_complex and tensor.is_conj())


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy, whose memory holds the elements as they are. The one way in for tensors."""
    return tensor.resolve_conj().resolve_neg().contiguous()


def _memory_of(tensor: torch.Tensor) -> Tuple[int, int]:
    """Where its memory begins and ends, with the gaps between its elements. A sparse tensor, or one without elements, has none."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return 0, 0
    begin = tensor.data_ptr()
    last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    return begin, begin + (last + 1) * tensor.element_size()


def sharing(tensors: Sequence[torch.Tensor]) -> Set[int]:
    """Returns which of the tensors, by their places in the list, may share memory with another of them: the same one twice, views that overlap."""
    found: Set[int] = set()
    reach = owner = 0
    for begin, end, place in sorted((*_memory_of(tensor), place) for place, tensor in enumerate(tensors)):
        if begin < reach:
            found.update((owner, place))
        if end > reach:
            reach, owner = end, place
    return found


def apart(tensor: torch.Tensor) -> torch.Tensor:
    """A copy, in separate memory."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def write(tensors: Sequence[torch.Tensor], step: Callable[[], None]) -> None:
    """Runs step(), which writes to the tensors, as the thread that gave them could: without gradients, and in inference mode where they were made in it."""
    with torch.inference_mode() if any(tensor.is_inference() for tensor in tensors) else torch.no_grad():
        step()
