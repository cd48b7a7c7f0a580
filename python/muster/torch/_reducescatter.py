"""Reduces tensors and leaves each rank some rows: `reducescatter`, and its grouped and asynchronous forms.

Collective over the ranks of the process set.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch
import _muster_native as native
from muster import world
from muster.errors import CollectiveError
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch import _requests
from muster.torch._allgather import allgather, grouped_allgather
from muster.torch._differentiable import differentiable
from muster.torch._reductions import Adasum, Average, Plan, Sum, plan, result_of, sent_of
from muster.torch._requests import synchronize
from muster.torch._tensors import of_result, place_of, place_of_all, shape_of, type_of
from muster.torch.compression import Compression


def _check(op: int, *tensors: torch.Tensor) -> None:
    if op == Adasum:
        raise CollectiveError("reducescatter: Adasum is there for allreduce only", native.E_USAGE, ())
    if any(tensor.dim() == 0 for tensor in tensors):
        raise ValueError("reducescatter: a scalar has no rows to scatter; give it a shape of one dimension, or use allreduce")


def _result(how: Plan, dtype: torch.dtype, request: native.Handle, sent: torch.Tensor, *index: int) -> torch.Tensor:
    return result_of(of_result(request, sent, *index), how, dtype)


def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Submits the tensor, and returns a handle for `synchronize`, which gives a new tensor. See `reducescatter`."""
    number = number_of(process_set)
    comm = world.comm()
    _check(op, tensor)
    memory, stream = place_of(tensor)
    how = plan(op, prescale_factor, postscale_factor, process_set, tensor)
    name = world.named("reducescatter", name, number)
    dtype = tensor.dtype
    sent = sent_of(tensor, how)
    place, ranks = comm.place_in_set(number)
    share = sent.shape[0] // ranks + (place < sent.shape[0] % ranks)
    received = torch.empty((share, *sent.shape[1:]), dtype=sent.dtype, device=sent.device)
    request = comm.submit(
        native.REDUCESCATTER, how.how, (name, sent.data_ptr(), received.data_ptr(), shape_of(sent), type_of(sent)),
        prescale=how.prescale, postscale=how.postscale, set=number, memory=memory, stream=stream, keep=(sent, received), out_elements=received.numel(),
    )  # fmt: skip
    return _requests.add(request, received, None if how.is_native else lambda _, received: result_of(received, how, dtype))


def _factor(op: int, process_set: ProcessSet, prescale: float, postscale: float) -> float:
    """Returns what the gathered gradient is multiplied by: an average's is the whole sum's divided by the ranks, as a sum's would be after an average."""
    return (process_set.size() if op == Sum else 1) * prescale * postscale


def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduces the tensor over the ranks and leaves each rank its rows of the result. Blocking, differentiable.

    Of R rows over N ranks the first R % N ranks get one row more. The gradients of all ranks' rows are gathered, times N for Sum, times the factors.

    Args:
        tensor: the same shape and type on all ranks, of at least one dimension; types as of `allreduce`.
        name: what the ranks know it by; None: counted, so that ranks must call it equally often.
        compression: `Compression.none`, `.fp16`, `.bf16`, or any class with compress and decompress.
        op: Average (the default), Sum, Min, Max or Product.
        process_set: ranks outside of it must not call this.
        prescale_factor: multiplies the tensor before, postscale_factor after.

    Returns:
        A new tensor: this rank's rows.

    Raises:
        ValueError: a scalar, a type that cannot be reduced so, or the name is in flight.
        CollectiveError: op is Adasum; ranks have died, hang, or disagree on type, shape or reduction; on every rank.
    """
    small, context = compression.compress(tensor)
    reduced = differentiable(
        lambda one: synchronize(reducescatter_async(one, name, op, process_set, prescale_factor, postscale_factor)),
        lambda gradient: (allgather(gradient * _factor(op, process_set, prescale_factor, postscale_factor), process_set=process_set),),
        small,
    )
    return compression.decompress(reduced, context)


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Submits the tensors as one request, and returns one handle; `synchronize` gives a list of new tensors. See `grouped_reducescatter`."""
    number = number_of(process_set)
    comm = world.comm()
    tensors = list(tensors)
    if not tensors:
        return _requests.add(None, [])
    _check(op, *tensors)
    memory, stream = place_of_all(tensors)
    how = plan(op, prescale_factor, postscale_factor, process_set, *tensors)
    name = world.named("grouped_reducescatter", name, number)
    types = [tensor.dtype for tensor in tensors]
    all_sent = [sent_of(tensor, how) for tensor in tensors]
    listed = [(f"{name}_{i}of{len(tensors)}", sent.data_ptr(), 0, shape_of(sent), type_of(sent)) for i, sent in enumerate(all_sent, 1)]
    request = comm.submit_group(
        native.REDUCESCATTER, how.how, name, listed, prescale=how.prescale, postscale=how.postscale, set=number, memory=memory, stream=stream, keep=all_sent
    )
    return _requests.add(request, all_sent, lambda request, all_sent: [_result(how, types[i], request, sent, i) for i, sent in enumerate(all_sent)])


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[torch.Tensor]:
    """Reduces and scatters each of the tensors as `reducescatter` does, all or none; a list of new tensors. Blocking, differentiable."""
    pairs = [compression.compress(tensor) for tensor in tensors]

    def gradients_of(*gradients: torch.Tensor) -> List[torch.Tensor]:
        factor = _factor(op, process_set, prescale_factor, postscale_factor)
        return grouped_allgather([gradient * factor for gradient in gradients], process_set=process_set)

    reduced = differentiable(
        lambda *these: tuple(synchronize(grouped_reducescatter_async(these, name, op, process_set, prescale_factor, postscale_factor))),
        gradients_of,
        *[one for one, _ in pairs],
    )
    return [compression.decompress(one, context) for one, (_, context) in zip(reduced, pairs)]
