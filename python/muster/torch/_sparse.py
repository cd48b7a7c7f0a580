"""Reduces sparse gradients: every rank gets the indices and values of all."""

from __future__ import annotations

from typing import Any, Optional

import torch
import _muster_native as native
from muster import world
from muster.process_sets import number_of
from muster.torch._reductions import Average, Sum
from muster.torch._tensors import as_bytes, of_result, place_of


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
            indices, values = gradient.indices().t().contiguous(), gradient.values().contiguous()
        self._how = how
        self._shape = shape
        compressed, self._context = how.compression.compress(values)
        self._indices, self._values = indices, compressed.contiguous()
        number = number_of(how.process_set)
        self._handles = [self._submit(f"{name} (indices)", self._indices, number), self._submit(f"{name} (values)", self._values, number)]

    @staticmethod
    def _submit(name: str, tensor: torch.Tensor, number: int) -> native.Handle:
        shape, kind = as_bytes(tensor)
        memory, stream = place_of(tensor)
        return world.comm().submit(native.ALLGATHER, 0, None, name, tensor.data_ptr(), 0, shape, kind, 1.0, 1.0, number, 0, 0, memory, stream, tensor)

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
