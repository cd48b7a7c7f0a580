"""Maps torch.distributed's reductions and tensor types to those that muster computes with.

What muster cannot add as it is travels in a wider type and is narrowed again, or is gathered and reduced by every rank for itself, in the order of the ranks.
"""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional

import torch
import torch.distributed as dist
import _muster_native as native
from muster._torch_types import TYPES

_Op = dist.ReduceOp.RedOpType if hasattr(dist.ReduceOp, "RedOpType") else dist.ReduceOp

_SAME = {
    _Op.SUM: native.SUM,
    _Op.AVG: native.AVERAGE,
    _Op.MIN: native.MIN,
    _Op.MAX: native.MAX,
    _Op.PRODUCT: native.PRODUCT,
}

# bool is 0 or 1 in a byte.
_OF_BOOL = {
    _Op.SUM: native.MAX,
    _Op.PRODUCT: native.MIN,
    _Op.MIN: native.MIN,
    _Op.MAX: native.MAX,
    _Op.BAND: native.MIN,
    _Op.BOR: native.MAX,
}

_BITWISE = {_Op.BAND: torch.bitwise_and, _Op.BOR: torch.bitwise_or, _Op.BXOR: torch.bitwise_xor}


def _types(**wider):
    """Maps each of those types that this torch has to the type that it travels in."""
    return {getattr(torch, name): carrier for name, carrier in wider.items() if hasattr(torch, name)}


# Sums and products modulo 2^bits come out the same in a wider type.
_WIDER = _types(
    int16=torch.int32,
    uint16=torch.int32,
    uint32=torch.int64,
    float8_e4m3fn=torch.float32,
    float8_e5m2=torch.float32,
    float8_e4m3fnuz=torch.float32,
    float8_e5m2fnuz=torch.float32,
    float8_e8m0fnu=torch.float32,
)
_UINT64 = getattr(torch, "uint64", None)


class Plan(NamedTuple):
    """Says how tensors of one type are reduced.

    Attributes:
        how: the reduction of muster, of what `pack` gives.
        prescale: factor before it.
        pack: makes what travels of a tensor; None: the tensor itself.
        unpack: unpack(reduced, like) makes of what was reduced a tensor of the type of `like`; None: nothing to do.
        local: where muster has no such reduction: reduces a tensor of (ranks, elements) over the ranks.
    """

    how: int = native.SUM
    prescale: float = 1.0
    pack: Optional[Callable[[torch.Tensor], torch.Tensor]] = None
    unpack: Optional[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = None
    local: Optional[Callable[[torch.Tensor], torch.Tensor]] = None


def _back(reduced: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return reduced.to(like.dtype)


def _in_turn(combine: Callable) -> Callable[[torch.Tensor], torch.Tensor]:
    def local(gathered: torch.Tensor) -> torch.Tensor:
        result = gathered[0]
        for row in gathered[1:]:
            result = combine(result, row)
        return result

    return local


def _refuse(op, dtype: torch.dtype) -> ValueError:
    return ValueError(f"{op.name} of {dtype} has no meaning; convert the tensor, or use another reduction")


def _factor(op):
    """The factor of a PREMUL_SUM: a number or a tensor. Raises ValueError where this torch does not tell it."""
    if hasattr(op, "factor"):
        return op.factor
    state = op.__getstate__() if hasattr(op, "__getstate__") else None
    if not isinstance(state, tuple) or len(state) != 2:
        raise ValueError(f"PREMUL_SUM: torch {torch.__version__} does not tell the factor; multiply the tensor, then use SUM")
    return state[1]


def _premultiplied(op, dtype: torch.dtype, size: int) -> Plan:
    factor = _factor(op)
    below = plan_of(_Op.SUM, dtype, size)
    if not isinstance(factor, torch.Tensor) and dtype.is_floating_point and below.pack is None:
        return below._replace(prescale=float(factor))
    pack = below.pack

    def multiply(tensor: torch.Tensor) -> torch.Tensor:
        product = (tensor * factor).to(dtype)
        return pack(product) if pack else product

    return below._replace(pack=multiply)


def plan_of(op, dtype: torch.dtype, size: int) -> Plan:
    """Returns how tensors of this type are reduced over `size` ranks. Raises ValueError for what has no meaning, such as MAX of complex numbers."""
    of = getattr(op, "op", op)
    if of == _Op.PREMUL_SUM:
        return _premultiplied(op, dtype, size)
    if dtype is torch.bool:
        if of == _Op.BXOR:
            return Plan(native.SUM, pack=lambda t: t.view(torch.uint8), unpack=lambda reduced, like: (reduced & 1).view(torch.bool))
        if of not in _OF_BOOL:
            raise _refuse(of, dtype)
        return Plan(_OF_BOOL[of], pack=lambda t: t.view(torch.uint8), unpack=lambda reduced, like: reduced.view(torch.bool))
    if dtype.is_complex:
        if of in (_Op.SUM, _Op.AVG) and dtype is not getattr(torch, "complex32", None):
            return Plan(_SAME[of], pack=torch.view_as_real, unpack=lambda reduced, like: torch.view_as_complex(reduced))
        if of == _Op.PRODUCT:
            return Plan(local=_in_turn(torch.mul))
        raise _refuse(of, dtype)
    if of in _BITWISE:
        if dtype.is_floating_point:
            raise _refuse(of, dtype)
        return Plan(local=_in_turn(_BITWISE[of]))
    if of not in _SAME:
        raise ValueError(f"the reduction {of.name} is unknown; use one of SUM, AVG, MIN, MAX, PRODUCT, BAND, BOR, BXOR")
    if of == _Op.AVG and not dtype.is_floating_point:
        # The sum in a type that does not wrap, then rounded towards zero.
        wide = torch.int64 if dtype in (torch.int64, torch.int32) or dtype in _WIDER and _WIDER[dtype] is torch.int64 else torch.int32
        if dtype is _UINT64:
            raise _refuse(of, dtype)
        return Plan(native.SUM, pack=lambda t: t.to(wide), unpack=lambda reduced, like: torch.div(reduced, size, rounding_mode="trunc").to(like.dtype))
    if dtype in TYPES:
        return Plan(_SAME[of])
    if dtype is _UINT64:
        if of in (_Op.SUM, _Op.PRODUCT):
            return Plan(_SAME[of], pack=lambda t: t.view(torch.int64), unpack=lambda reduced, like: reduced.view(_UINT64))
        top = -(1 << 63)  # flipping the highest bit keeps the order
        return Plan(_SAME[of], pack=lambda t: t.view(torch.int64) ^ top, unpack=lambda reduced, like: (reduced ^ top).view(_UINT64))
    wide = _WIDER.get(dtype)
    if wide is None:
        raise ValueError(f"tensors of {dtype} cannot be reduced; convert them")
    return Plan(_SAME[of], pack=lambda t: t.to(wide), unpack=_back)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory, where nothing is added: the tensor itself, or its bytes."""
    if tensor.dtype in TYPES:
        return tensor
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor)
        if tensor.dtype in TYPES:
            return tensor
    return tensor.reshape(-1).view(torch.uint8)
