"""Gives all ranks one rank's tensor: `broadcast`, and its asynchronous and in-place forms. Collective over the ranks of the process set."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import _muster_native as native
from muster import world
from muster._torch_types import write
from muster.process_sets import ProcessSet, global_process_set, number_of, root_within
from muster.torch import _requests
from muster.torch._allreduce import allreduce
from muster.torch._differentiable import differentiable
from muster.torch._requests import synchronize
from muster.torch._tensors import as_bytes, place_of, plain


def _copied_back(_, tensors):
    received, output = tensors
    write([output], lambda: output.copy_(received))
    return output


def _submit(tensor: torch.Tensor, in_place: bool, root_rank: int, name: Optional[str], process_set: ProcessSet) -> int:
    number = number_of(process_set)
    comm = world.comm()
    root = root_within(process_set, root_rank)
    memory, stream = place_of(tensor)
    sent = plain(tensor.detach())
    received = sent if in_place else torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    name = world.named("broadcast", name, number)
    shape, kind = as_bytes(sent)
    moved = (name, sent.data_ptr(), received.data_ptr(), shape, kind)
    request = comm.submit(native.BROADCAST, root, moved, set=number, memory=memory, stream=stream, keep=(sent, received))
    if not in_place:
        return _requests.add(request, received)
    if received.data_ptr() == tensor.data_ptr():
        return _requests.add(request, tensor)
    return _requests.add(request, (received, tensor), _copied_back)


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    """Submits the tensor, and returns a handle for `synchronize`, which gives a new tensor. See `broadcast`."""
    return _submit(tensor, False, root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    """Submits the tensor, and returns a handle for `synchronize`; the tensor itself, untouched until then, holds the result. See `broadcast`."""
    return _submit(tensor, True, root_rank, name, process_set)


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Overwrites the tensor with the root's, blocking, and returns it. See `broadcast`."""
    return synchronize(_submit(tensor, True, root_rank, name, process_set))


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Gives all ranks of the process set the root's tensor. Blocking, differentiable: the root's gradient is the average, the others' zero.

    Args:
        tensor: of any type; the same shape and type on all ranks.
        root_rank: the root's number in the world, also where a process set is given.
        name: what the ranks know it by; None: counted, so that ranks must call it equally often.
        process_set: ranks outside of it must not call this.

    Returns:
        A new tensor, the same on all ranks.

    Raises:
        ValueError: the name is in flight.
        CollectiveError: the root is not in the set; ranks have died, hang, or disagree on type, shape or root; on every rank.
    """

    def gradients_of(gradient: torch.Tensor) -> Tuple[torch.Tensor]:
        reduced = allreduce(gradient, process_set=process_set)
        return (reduced if world.rank() == root_rank else torch.zeros_like(reduced),)

    return differentiable(lambda one: synchronize(_submit(one, False, root_rank, name, process_set)), gradients_of, tensor)
