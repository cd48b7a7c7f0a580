"""Names how gradients travel: `Compression.none`, `.fp16`, `.bf16`. Sums are computed in 32 bits; what rounding loses is added in the next step."""

from __future__ import annotations

import _muster_native as native


class NoneCompressor:
    """Sends tensors as they are."""

    kind = "none"
    wire = 0


class FP16Compressor:
    """f32 as f16: 11 significant bits, at most 65504."""

    kind = "fp16"
    wire = native.WIRE_F16


class BF16Compressor:
    """f32 as bf16: 8 significant bits, the range of f32."""

    kind = "bf16"
    wire = native.WIRE_BF16


class Compression:
    """Says how tensors travel."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
