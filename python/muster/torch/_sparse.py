"""Reduces sparse tensors: every rank gets the indices and values of all. `sparse_allreduce_async`, and the gradients of embeddings."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import torch
import _muster_native as native
from muster import world
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch._allgather import allgather_async
from muster.torch._reductions import Average, Sum, scaled
from muster.torch._requests import synchronize
from muster.torch._tensors import as_bytes, of_result, place_of, plain

#: The indices were other ranks' gradients' own. Since torch 2.0 it can be said, and later versions warn if it is not.
_UNCHECKED = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


class SparseReduction:
    """The sum or average of the ranks' sparse gradients of one parameter, on its way.

    Args:
        gradient: sparse, dense, or None for zeros.
        dimensions: how many of its dimensions are indexed.
        how: a `gradients.Reduction`.
    """

    def __init__(self, parameter: torch.Tensor, gradient: Optional[torch.Tensor], dimensions: int, how: Any, name: str) -> None:
        if how.op not in (Average, Sum):
            raise NotImplementedError(f'the sparse gradient of {name}: only Average and Sum are possible; set sparse_as_dense=True')
        shape = tuple(parameter.shape)
        if gradient is not None and gradient.is_sparse and gradient._nnz() == 0:
            gradient = None  # zero_() has made all its dimensions sparse
        if gradient is None:
            indices = torch.empty((0, dimensions), dtype=torch.int64, device=parameter.device)
            values = torch.empty((0, *shape[dimensions:]), dtype=parameter.dtype, device=parameter.device)
        else:
            gradient = gradient.detach()
            if gradient.is_sparse and gradient.sparse_dim() != dimensions:
                gradient = gradient.to_dense()
            gradient = (gradient if gradient.is_sparse else gradient.to_sparse(dimensions)).coalesce()
            indices, values = gradient.indices().t().contiguous(), plain(gradient.values())
        self._how = how
        self._shape = shape
        compressed, self._context = how.compression.compress(values)
        self._indices, self._values = indices, plain(compressed)
        number = number_of(how.process_set)
        self._handles = [self._submit(f"{name} (indices)", self._indices, number), self._submit(f"{name} (values)", self._values, number)]

    @staticmethod
    def _submit(name: str, tensor: torch.Tensor, number: int) -> native.Handle:
        shape, kind = as_bytes(tensor)
        memory, stream = place_of(tensor)
        return world.comm().submit(native.ALLGATHER, 0, (name, tensor.data_ptr(), 0, shape, kind), set=number, memory=memory, stream=stream, keep=tensor)

    def finish(self, slot: Any) -> None:
        """Waits, and sets the parameter's gradient: sparse, coalesced. Raises what it failed of."""
        for handle in self._handles:
            handle.wait()
        indices = of_result(self._handles[0], self._indices)
        values = self._how.compression.decompress(of_result(self._handles[1], self._values), self._context)
        if self._how.op == Average:
            values = values / self._how.process_set.size()
        parameter = slot.parameter
        gradient = torch.sparse_coo_tensor(indices.t(), values.to(parameter.dtype), self._shape, device=parameter.device, **_UNCHECKED).coalesce()
        if parameter.grad is not None and not parameter.grad.is_sparse:
            parameter.grad = None
        parameter.grad = gradient


def sparse_allreduce_async(
    tensor: torch.Tensor, name: Optional[str], op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], torch.Tensor]:
    """Adds up sparse tensors (layout torch.sparse_coo) by gathering the indices and values of all ranks; op is Sum or Average.

    Returns:
        What stands for a handle: called, it waits and returns the sparse tensor, not coalesced. `synchronize` does not take it.
    """
    if tensor.layout is not torch.sparse_coo:
        raise ValueError(f"a tensor of the layout {tensor.layout} is not sparse_coo; use allreduce_async")
    if op not in (Sum, Average):
        raise ValueError("sparse tensors can be reduced with op=Sum or op=Average; make the tensor dense for others")
    own = tensor.detach().coalesce()
    ranks = process_set.size()
    # An index a row, since rows are what ranks may have different numbers of.
    indices = allgather_async(own.indices().t().contiguous(), None if name is None else name + ".indices", process_set)
    values = allgather_async(own.values(), None if name is None else name + ".values", process_set)
    shape: Tuple[int, ...] = tuple(tensor.shape)

    def finish() -> torch.Tensor:
        of_all = synchronize(values)
        at = synchronize(indices).t()
        return torch.sparse_coo_tensor(at, scaled(of_all, 1.0, ranks) if op == Average else of_all, shape, **_UNCHECKED)

    return finish
