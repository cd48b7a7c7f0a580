"""Makes tensors smaller on their way: `Compression.none`, `.fp16`, `.bf16`, and the interface of users' own."""

from __future__ import annotations

from typing import Any, Tuple

import torch
import _muster_native as native


class Compressor:
    """Does a compression. A class that you write has these two, called on every rank."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """(what is reduced instead, what `decompress` will want to know)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """The reduced tensor in its former type; `ctx` is what `compress` returned."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


class _Cast(Compressor):
    """Converts floating tensors to a type of 16 bits; others stay as they are."""

    dtype: torch.dtype
    wire: int  #: the same in muster's own copy, with sums in 32 bits

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return (tensor.to(cls.dtype) if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @classmethod
    def decompress(cls, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)


class FP16Compressor(_Cast):
    """Halves f32: 11 significant bits, at most 65504."""

    dtype = torch.float16
    wire = native.WIRE_F16


class BF16Compressor(_Cast):
    """Halves f32: 8 significant bits, the range of f32."""

    dtype = torch.bfloat16
    wire = native.WIRE_BF16


class Compression:
    """Says how tensors travel."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def wire_of(compression: Any, op: int, *tensors: torch.Tensor) -> int:
    """Returns what to submit these tensors with so that muster compresses them in the copy it makes anyway (WIRE_F16 …); 0: call compress and decompress.

    muster does it for sums and averages of f32.
    """
    from muster.torch._reductions import Average, Sum

    wired = compression is FP16Compressor or compression is BF16Compressor
    return compression.wire if wired and op in (Average, Sum) and all(tensor.dtype is torch.float32 for tensor in tensors) else 0
