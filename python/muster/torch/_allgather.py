"""Puts the rows of all ranks one after the other: `allgather`, and its grouped and asynchronous forms.

Collective over the ranks of the process set. Ranks may give different numbers of rows.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import torch
import _muster_native as native
from muster import world
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch import _requests
from muster.torch._allreduce import allreduce, grouped_allreduce
from muster.torch._requests import synchronize
from muster.torch._tensors import as_bytes, of_result, place_of, place_of_all, plain


def _rows_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns what is sent: of a scalar one row."""
    rows = plain(tensor.detach())
    return rows.reshape(1) if rows.dim() == 0 else rows


def _gather(tensor: torch.Tensor, name: Optional[str], process_set: ProcessSet) -> Tuple[native.Handle, torch.Tensor]:
    """(request, what was sent)."""
    number = number_of(process_set)
    comm = world.comm()
    memory, stream = place_of(tensor)
    rows = _rows_of(tensor)
    name = world.named("allgather", name, number)
    shape, kind = as_bytes(rows)
    return comm.submit(native.ALLGATHER, 0, (name, rows.data_ptr(), 0, shape, kind), set=number, memory=memory, stream=stream, keep=rows), rows


def _gather_all(tensors: Sequence[torch.Tensor], name: Optional[str], process_set: ProcessSet) -> Tuple[Optional[native.Handle], List[torch.Tensor]]:
    """(request, what was sent); no request for no tensors."""
    number = number_of(process_set)
    comm = world.comm()
    if not tensors:
        return None, []
    memory, stream = place_of_all(tensors)
    name = world.named("grouped_allgather", name, number)
    all_rows = [_rows_of(tensor) for tensor in tensors]
    listed = [(f"{name}_{i}of{len(tensors)}", rows.data_ptr(), 0, *as_bytes(rows)) for i, rows in enumerate(all_rows, 1)]
    return comm.submit_group(native.ALLGATHER, 0, name, listed, set=number, memory=memory, stream=stream, keep=all_rows), all_rows


def allgather_async(tensor: torch.Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    """Submits the tensor, and returns a handle for `synchronize`, which gives a new tensor. See `allgather`."""
    return _requests.add(*_gather(tensor, name, process_set), of_result)


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        request, rows = _gather(tensor, name, process_set)
        gathered = synchronize(_requests.add(request, rows, of_result))
        counts = request.rows()
        place = process_set.rank()
        ctx.own = (sum(counts[:place]), counts[place])
        ctx.shape = tensor.shape
        ctx.process_set = process_set
        return gathered

    @staticmethod
    def backward(ctx, gradient):
        return allreduce(gradient, process_set=ctx.process_set).narrow(0, *ctx.own).reshape(ctx.shape), None, None


def allgather(tensor: torch.Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Puts the rows of all ranks one after the other, in the order of the ranks. Blocking, differentiable.

    The gradient is the averaged one of this rank's own rows.

    Args:
        tensor: of any type; the first extent may differ between ranks, the others may not. A scalar counts as one row.
        name: what the ranks know it by; None: counted, so that ranks must call it equally often.
        process_set: ranks outside of it must not call this.

    Returns:
        A new tensor of all rows.

    Raises:
        ValueError: the name is in flight.
        CollectiveError: ranks have died, hang, or disagree on the type or the shape of a row; on every rank.
    """
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Allgather.apply(tensor, name, process_set)
    return synchronize(allgather_async(tensor, name, process_set))


def _results(request: native.Handle, all_rows: List[torch.Tensor]) -> List[torch.Tensor]:
    return [of_result(request, rows, i) for i, rows in enumerate(all_rows)]


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    """Submits the tensors as one request, all or none, and returns one handle; `synchronize` gives a list of new tensors. See `grouped_allgather`."""
    return _requests.add(*_gather_all(list(tensors), name, process_set), _results)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        request, all_rows = _gather_all(tensors, name, process_set)
        gathered = synchronize(_requests.add(request, all_rows, _results))
        place = process_set.rank()
        counts = [request.rows(i) for i in range(len(all_rows))]
        ctx.own = [(sum(rows[:place]), rows[place]) for rows in counts]
        ctx.shapes = [tensor.shape for tensor in tensors]
        ctx.process_set = process_set
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *gradients):
        reduced = grouped_allreduce(gradients, process_set=ctx.process_set)
        return (None, None, *(one.narrow(0, *own).reshape(shape) for one, own, shape in zip(reduced, ctx.own, ctx.shapes)))


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[torch.Tensor]:
    """Gathers each of the tensors as `allgather` does, as one request: all or none. A list of new tensors. Blocking, differentiable."""
    tensors = list(tensors)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return list(_GroupedAllgather.apply(name, process_set, *tensors))
    return synchronize(grouped_allgather_async(tensors, name, process_set))
