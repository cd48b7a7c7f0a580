"""Reduces tensors over the ranks: `allreduce`, and its grouped, asynchronous and in-place forms.

All are collective over the ranks of the process set. Tensors of one name are reduced together, in any order; names left out are counted.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch
import _muster_native as native
from muster import world
from muster._torch_types import apart, sharing, write
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch import _requests
from muster.torch._differentiable import differentiable
from muster.torch._reductions import Plan, check_adasum, op_of, plan, result_of, sent_of
from muster.torch._requests import _next as _numbers, _open, synchronize
from muster.torch._tensors import place_of, place_of_all, shape_of, type_of
from muster.torch.compression import Compression, wire_of


class _Part:
    """One tensor on its way: what is sent, where the result comes, and where it goes in the end."""

    __slots__ = ("sent", "received", "output")

    def __init__(self, tensor: torch.Tensor, in_place: bool, how: Plan, is_shared: bool = False) -> None:
        self.sent = sent = sent_of(apart(tensor) if is_shared else tensor, how)
        if in_place:
            self.output = tensor
            self.received = sent  # its own memory, or the copy's
        else:
            self.received = torch.empty(sent.shape, dtype=sent.dtype, device=sent.device)
            self.output = self.received if sent.dtype == tensor.dtype else torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)

    def finish(self, how: Plan) -> torch.Tensor:
        """The output, with the result in it."""
        result = result_of(self.received, how, self.output.dtype)
        if result.data_ptr() != self.output.data_ptr():
            write([self.output], lambda: self.output.copy_(result))
        return self.output


def _submit(
    tensor: torch.Tensor, in_place: bool, name: Optional[str], op: int, prescale: float, postscale: float, process_set: ProcessSet, wire: int = 0
) -> int:
    check_adasum(op, process_set)
    number = number_of(process_set)
    comm = world.comm()
    memory, stream = place_of(tensor)
    how = plan(op, prescale, postscale, process_set, tensor)
    name = world.named("allreduce", name, number)
    part = _Part(tensor, in_place, how)
    request = comm.submit(
        native.ALLREDUCE, how.how, (name, part.sent.data_ptr(), part.received.data_ptr(), shape_of(tensor), type_of(part.sent)),
        prescale=how.prescale, postscale=how.postscale, set=number, compression=wire, error_feedback=1 if wire else 0,
        memory=memory, stream=stream, keep=(part.sent, part.received),
    )  # fmt: skip
    if how.is_native and part.received.data_ptr() == part.output.data_ptr():
        return _requests.add(request, part.output)
    return _requests.add(request, part, lambda _, part: part.finish(how))


def _submit_in_place(
    tensor: torch.Tensor, average: Optional[bool], name: Optional[str], op: Optional[int], prescale: float, postscale: float, process_set: ProcessSet
) -> int:
    """Works as `_submit`. The usual costs one call of the extension, which gives None for the rest."""
    if process_set is global_process_set and average is None:
        if name is None:
            name = world.nameless_part("allreduce", 0)
        request = world.comm().reduce(tensor, name, op, prescale, postscale)
        if request is not None:
            number = next(_numbers)
            _open[number] = (request, tensor, None)
            return number
    return _submit(tensor, True, name, op_of(op, average), prescale, postscale, process_set)


def _submit_group(
    tensors: Sequence[torch.Tensor],
    in_place: bool,
    name: Optional[str],
    op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
    wire: int = 0,
) -> int:
    check_adasum(op, process_set)
    number = number_of(process_set)
    comm = world.comm()
    tensors = list(tensors)
    if not tensors:
        return _requests.add(None, [])
    memory, stream = place_of_all(tensors)
    how = plan(op, prescale, postscale, process_set, *tensors)
    name = world.named("grouped_allreduce", name, number)
    shared = sharing(tensors) if in_place else ()  # each counts as it is now, and they are written one after the other
    parts = [_Part(tensor, in_place, how, i in shared) for i, tensor in enumerate(tensors)]
    listed = [
        (f"{name}_{i}of{len(parts)}", part.sent.data_ptr(), part.received.data_ptr(), shape_of(tensor), type_of(part.sent))
        for i, (part, tensor) in enumerate(zip(parts, tensors), 1)
    ]
    kept = [(part.sent, part.received) for part in parts]
    request = comm.submit_group(
        native.ALLREDUCE, how.how, name, listed, prescale=how.prescale, postscale=how.postscale, set=number, compression=wire,
        error_feedback=1 if wire else 0, memory=memory, stream=stream, keep=kept,
    )  # fmt: skip
    return _requests.add(request, parts, lambda _, parts: [part.finish(how) for part in parts])


def allreduce_async(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Submits the tensor, and returns a handle for `synchronize`, which gives a new tensor. See `allreduce`."""
    return _submit(tensor, False, name, op_of(op, average), prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Submits the tensor, and returns a handle for `synchronize`; the tensor itself, untouched until then, holds the result. See `allreduce`."""
    return _submit_in_place(tensor, average, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces the tensor in place, blocking, and returns it. See `allreduce`."""
    return synchronize(_submit_in_place(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def _allreduce(tensor: torch.Tensor, name: Optional[str], *arguments) -> torch.Tensor:
    return differentiable(
        lambda one: synchronize(_submit(one, False, name, *arguments)), lambda gradient: (_allreduce(gradient, None, *arguments),), tensor
    )


def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces the tensor over the ranks of the process set, blocking. Differentiable: the gradient is reduced in the same way.

    Args:
        tensor: the same shape and type on all ranks. Floating types; i32, i64, u8, i8, with averages and factors that truncate; bool for Min, Max.
        average: deprecated: True is op=Average, False is op=Sum.
        name: what the ranks know it by; None: counted, so that ranks must call it equally often.
        compression: how it travels: `Compression.none`, `.fp16`, `.bf16`, or any class with compress and decompress.
        op: Average (the default), Sum, Adasum, Min, Max or Product.
        prescale_factor: multiplies the tensor before, postscale_factor after.
        process_set: ranks outside of it must not call this.

    Returns:
        A new tensor of the same shape and type, the same on all ranks.

    Raises:
        ValueError: a type that cannot be reduced so, or the name is in flight.
        CollectiveError: ranks have died, hang, or disagree on type, shape or reduction; on every rank.
    """
    op = op_of(op, average)
    wire = wire_of(compression, op, tensor)
    if wire:
        return _allreduce(tensor, name, op, prescale_factor, postscale_factor, process_set, wire)
    small, context = compression.compress(tensor)
    return compression.decompress(_allreduce(small, name, op, prescale_factor, postscale_factor, process_set, 0), context)


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Submits the tensors as one request, all or none, and returns one handle; `synchronize` gives a list of new tensors. See `grouped_allreduce`."""
    return _submit_group(tensors, False, name, op_of(op, average), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Submits the tensors as one request, all or none, and returns one handle; the results are in the tensors themselves. See `grouped_allreduce`."""
    return _submit_group(tensors, True, name, op_of(op, average), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """Reduces the tensors in place, blocking, and returns them. See `grouped_allreduce`."""
    return synchronize(_submit_group(tensors, True, name, op_of(op, average), prescale_factor, postscale_factor, process_set))


def _grouped(tensors: Sequence[torch.Tensor], name: Optional[str], *arguments) -> List[torch.Tensor]:
    def run(*these: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        return tuple(synchronize(_submit_group(these, False, name, *arguments)))

    return list(differentiable(run, lambda *gradients: _grouped(gradients, None, *arguments), *tensors))


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """Reduces the tensors over the ranks of the process set as one request: all or none. Blocking, differentiable.

    Arguments and errors are those of `allreduce`. The tensors may differ in type; integers among them have all of them averaged after the sum.

    Returns:
        A list of new tensors.
    """
    op = op_of(op, average)
    tensors = list(tensors)
    wire = wire_of(compression, op, *tensors)
    if wire:
        return _grouped(tensors, name, op, prescale_factor, postscale_factor, process_set, wire)
    pairs = [compression.compress(tensor) for tensor in tensors]
    reduced = _grouped([small for small, _ in pairs], name, op, prescale_factor, postscale_factor, process_set, 0)
    return [compression.decompress(one, context) for one, (_, context) in zip(reduced, pairs)]
