"""The numbers that the native module has for torch's types, and tensors as it reads them."""

from __future__ import annotations

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
    """Whether its memory holds its elements as they are, one after the other: no strides, no conjugation or negation that is still to come."""
    return tensor.is_contiguous() and not tensor.is_neg() and not (tensor.dtype.is_complex and tensor.is_conj())


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy, whose memory holds the elements as they are. The one way in for tensors."""
    return tensor.resolve_conj().resolve_neg().contiguous()
