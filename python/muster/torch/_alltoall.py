"""Sends rows from each rank to each: `alltoall` and `alltoall_async`. Collective over the ranks of the process set."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple, Union

import torch
import _muster_native as native
from muster import world
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch import _requests
from muster.torch._requests import synchronize
from muster.torch._tensors import as_bytes, of_result, place_of, plain

Splits = Union[None, torch.Tensor, Sequence[int]]


def _numbers(splits: Splits) -> Optional[Sequence[int]]:
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dtype not in (torch.int32, torch.int64):
            raise ValueError(f"the splits are of {splits.dtype}; give a tensor of torch.int32, or a list of integers")
        if splits.dim() != 1:
            raise ValueError(f"the splits have the shape {tuple(splits.shape)}; give one number of rows for each rank")
        return splits.tolist()
    return [int(rows) for rows in splits]


def alltoall_async(
    tensor: torch.Tensor, splits: Splits = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    """Submits the tensor, and returns a handle for `synchronize`, which gives (a new tensor, rows received from each rank). See `alltoall`."""
    number = number_of(process_set)
    comm = world.comm()
    memory, stream = place_of(tensor)
    if tensor.dim() == 0:
        raise ValueError("alltoall: a scalar has no rows to send; give it a shape of one dimension")
    rows_for = _numbers(splits)
    sent = plain(tensor.detach())
    name = world.named("alltoall", name, number)
    shape, kind = as_bytes(sent)
    tensor = (name, sent.data_ptr(), 0, shape, kind)
    request = comm.submit(native.ALLTOALL, 0, tensor, splits=rows_for, set=number, memory=memory, stream=stream, keep=sent)
    dtype, device = (splits.dtype, splits.device) if isinstance(splits, torch.Tensor) else (torch.int32, "cpu")

    def finish(request: native.Handle, sent: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return of_result(request, sent), torch.tensor(request.rows(), dtype=dtype, device=device)

    return _requests.add(request, sent, finish)


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        received, rows = synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.process_set = process_set
        ctx.rows = rows
        ctx.mark_non_differentiable(rows)
        return received, rows

    @staticmethod
    def backward(ctx, gradient, _):
        return alltoall(gradient, ctx.rows, process_set=ctx.process_set)[0], None, None, None


def alltoall(
    tensor: torch.Tensor, splits: Splits = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    """Sends splits[i] rows, the first ones to rank 0 and so on, and puts what comes one after the other. Blocking, differentiable: gradients go back.

    Args:
        tensor: of any type; the first extent may differ between ranks, the others may not.
        splits: how many rows each rank of the set gets: integers that add up to the tensor's rows. None: equal parts.
        name: what the ranks know it by; None: counted, so that ranks must call it equally often.
        process_set: ranks outside of it must not call this.

    Returns:
        A new tensor; with splits a pair: the tensor, and a tensor of the rows received from each rank.

    Raises:
        ValueError: wrong splits, or the name is in flight.
        CollectiveError: ranks have died, hang, or disagree on the type or the shape of a row; on every rank.
    """
    if tensor.requires_grad and torch.is_grad_enabled():
        received, rows = _Alltoall.apply(tensor, splits, name, process_set)
    else:
        received, rows = synchronize(alltoall_async(tensor, splits, name, process_set))
    return received if splits is None else (received, rows)
