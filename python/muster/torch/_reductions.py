"""Names the reductions, and carries out on integers what muster does with floating types only: averages and factors."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Optional

import torch
import _muster_native as native
from muster.process_sets import ProcessSet
from muster._torch_types import has_plain_memory
from muster.torch._tensors import TYPES, plain

Average, Sum, Adasum, Min, Max, Product = range(6)

NATIVE = (native.AVERAGE, native.SUM, native.ADASUM, native.MIN, native.MAX, native.PRODUCT)
_NAMES = ("Average", "Sum", "Adasum", "Min", "Max", "Product")


def op_of(op: Optional[int], average: Optional[bool]) -> int:
    """The reduction that `op`, or the deprecated `average`, asks for; Average if neither is given. ValueError for both."""
    if average is not None:
        if op is not None:
            raise ValueError("op and average were both given; give op alone, since average is deprecated")
        warnings.warn("the argument average is deprecated; give op=Average or op=Sum", DeprecationWarning, stacklevel=3)
        return Average if average else Sum
    if op is None:
        return Average
    if not isinstance(op, int) or not 0 <= op < len(NATIVE):
        raise ValueError(f"{op!r} is no reduction; give Average, Sum, Adasum, Min, Max or Product")
    return op


def check_adasum(op: int, process_set: ProcessSet) -> None:
    """Adasum is there for all ranks only."""
    if op == Adasum and process_set.process_set_id != 0:
        raise NotImplementedError(f"Adasum within {process_set}: it is there for all ranks only; use Average, or the global process set")


class Plan(NamedTuple):
    """Says how tensors are reduced. Floating types: by muster wholly. Integers: scaled in double precision, summed, scaled again; each truncates."""

    how: int  #: the reduction, as muster calls it
    prescale: float  #: factors for muster
    postscale: float
    before: float  #: factors for `scaled`, before and after
    after: float
    divisor: int  #: what the result is to be divided by
    is_mean: bool = False  #: whether integers are summed in 64 bits, since their sum need not fit where the average does

    @property
    def is_native(self) -> bool:
        """Returns whether muster does all of it."""
        return self.before == 1 and self.after == 1 and self.divisor == 1 and not self.is_mean


def plan(op: int, prescale: float, postscale: float, process_set: ProcessSet, *tensors: torch.Tensor) -> Plan:
    """Returns how to reduce tensors of these types, all in the same way. ValueError for types that cannot be reduced so, and for a set that is not in use."""
    floating = True
    for tensor in tensors:
        kind = tensor.dtype
        if not kind.is_floating_point:
            floating = False
            if op == Adasum:
                raise ValueError(f"Adasum of {kind} is not an integer; convert to a floating type")
        if kind not in TYPES:
            if kind is not torch.bool:
                raise ValueError(f"tensors of {kind} cannot be reduced; convert to one of {', '.join(str(one)[6:] for one in TYPES)}")
            if op not in (Min, Max):
                raise ValueError(f"{_NAMES[op]} of torch.bool: use Max for or, Min for and, or convert to an integer type")
    if floating:
        # muster takes a factor of 0 as none given; what is scaled by zero after a sum is zero all the same.
        if prescale == 0 or postscale == 0:
            return Plan(NATIVE[op], 1.0, 1.0, prescale, postscale, 1)
        return Plan(NATIVE[op], prescale, postscale, 1.0, 1.0, 1)
    if op == Average:
        return Plan(native.SUM, 1.0, 1.0, prescale, postscale, process_set.size(), True)
    return Plan(NATIVE[op], 1.0, 1.0, prescale, postscale, 1)


def scaled(tensor: torch.Tensor, factor: float, divisor: int = 1) -> torch.Tensor:
    """tensor * factor / divisor, of the same type; integers truncate towards zero. The tensor itself where there is nothing to do."""
    if tensor.dtype.is_floating_point:
        return tensor * (factor / divisor) if factor != 1 or divisor != 1 else tensor
    if factor != 1:
        return (tensor.to(torch.float64) * (factor / divisor)).to(tensor.dtype)
    return torch.div(tensor, divisor, rounding_mode="trunc") if divisor != 1 else tensor


def sent_of(tensor: torch.Tensor, how: Plan) -> torch.Tensor:
    """Returns what travels of a tensor: its plain memory, wide enough, scaled."""
    if how.before == 1 and has_plain_memory(tensor) and (tensor.dtype.is_floating_point or not how.is_mean):
        return tensor  # only its memory is read, so that it need not be detached, which takes longer than all of this
    tensor = plain(tensor.detach())
    if how.is_mean and not tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.int64)
    return scaled(tensor, how.before)


def result_of(received: torch.Tensor, how: Plan, dtype: torch.dtype) -> torch.Tensor:
    """Returns what the ranks' `sent_of` have become, as a tensor of the type that was given."""
    return received if how.is_native else scaled(received, how.after, how.divisor).to(dtype)
