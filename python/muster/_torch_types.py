"""The numbers that the native module has for torch's types."""

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
