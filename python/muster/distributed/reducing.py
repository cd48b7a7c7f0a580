"""Adds to a process group the collectives that reduce: all_reduce, reduce, reduce_scatter, of dense and sparse tensors."""

from __future__ import annotations

from typing import Callable

import torch
import torch.distributed as dist
import _muster_native as native
from muster.distributed.group import flat_of, one, overlap
from muster.distributed.moving import MovingGroup
from muster._torch_types import apart, has_plain_memory, plain, sharing, write
from muster.distributed.overloads import collective
from muster.distributed.reductions import TYPES, Plan, as_bytes, plan_of
from muster.distributed.work import Work

_RedOp = getattr(dist.ReduceOp, "RedOpType", dist.ReduceOp)
_FAST = {
    (op, dtype): how
    for op, how in ((_RedOp.SUM, native.SUM), (_RedOp.AVG, native.AVERAGE), (_RedOp.MAX, native.MAX), (_RedOp.MIN, native.MIN))
    for dtype in TYPES
    if op != _RedOp.AVG or dtype.is_floating_point
}


class ReducingGroup(MovingGroup):
    """A process group whose collectives move and reduce."""

    @collective("ALLREDUCE", "tensors|tensor", "AllreduceOptions", "op timeout", one=0, alike=lambda tensors: tensors)
    def allreduce(self, tensors, opts=None) -> Work:
        if len(tensors) != 1:  # gloo would add these up too
            raise ValueError(f"{len(tensors)} tensors were given to an allreduce of one tensor a rank; use allreduce_coalesced to reduce each")
        tensor = tensors[0]
        if self._others != {}:
            other = self._other(tensor)
            if other is not None:
                return other.allreduce(tensors, opts)
        op = _RedOp.SUM if opts is None else getattr(opts.reduceOp, "op", opts.reduceOp)
        how = _FAST.get((op, tensor.dtype))
        if how is None or tensor.is_sparse or not has_plain_memory(tensor):
            return self._allreduce_by_plan([tensor], opts)
        if tensor.numel() == 0:
            return self._begun("allreduce", (), [tensor])
        return self._begun("allreduce", (self._submit(native.ALLREDUCE, "allreduce", how, tensor, tensor),), [tensor], None, opts)

    def _allreduce_by_plan(self, tensors, opts) -> Work:
        op = opts.reduceOp if opts is not None else _RedOp.SUM
        requests, after = [], []
        shared = sharing(tensors) if len(tensors) > 1 else ()
        given = [apart(tensor) if i in shared else tensor for i, tensor in enumerate(tensors)]
        for tensor, mine in zip(tensors, given):
            if tensor.is_sparse:
                after.append(self._allreduce_sparse(tensor, op))
                continue
            if tensor.numel() == 0:
                continue
            request, take = self._reduce_begin(mine, plan_of(op, tensor.dtype, self._size))
            requests.append(request)
            if take is not None:
                after.append(lambda tensor=tensor, take=take: tensor.copy_(take().view(tensor.shape)))
            elif mine is not tensor:
                after.append(lambda tensor=tensor, mine=mine: tensor.copy_(mine))

        def finish() -> None:
            for step in after:
                step()

        if after and not requests:
            write(tensors, finish)
        return self._begun("allreduce", requests, list(tensors), finish if after else None, opts)

    def _reduce_begin(self, tensor: torch.Tensor, plan: Plan, in_place: bool = True):
        """Begins to reduce a tensor. (request, what gives the result; None where it is in the tensor itself)."""
        packed = plain(tensor)
        if plan.pack is not None:
            packed = plain(plan.pack(packed))
        if plan.local is not None:
            raw = as_bytes(packed)
            gathered = torch.empty((self._size, *raw.shape), dtype=raw.dtype, device=raw.device)
            request = self._submit(native.ALLGATHER, "gather_reduce", 0, raw, gathered)
            shape = (self._size, *packed.shape)

            def reduced() -> torch.Tensor:
                if packed.dtype.is_complex and gathered.dtype is not torch.uint8:
                    return plan.local(torch.view_as_complex(gathered))
                return plan.local(gathered if gathered.dtype == packed.dtype else gathered.view(self._size, -1).view(packed.dtype).view(shape))

            return request, reduced
        mine = packed
        if not in_place and packed.data_ptr() == tensor.data_ptr():
            mine = packed.clone()
        request = self._submit(native.ALLREDUCE, "allreduce", plan.how, mine, mine, prescale=plan.prescale)
        if plan.unpack is not None:
            return request, lambda: plan.unpack(mine, tensor)
        return request, (None if mine.data_ptr() == tensor.data_ptr() else lambda: mine)

    def _allreduce_sparse(self, tensor: torch.Tensor, op) -> Callable[[], None]:
        """Sums COO tensors: gathers what is set, then adds. Blocks."""
        if getattr(op, "op", op) != _RedOp.SUM:
            raise ValueError("only SUM takes sparse tensors; use to_dense()")
        mine = tensor.coalesce()
        described = torch.empty(2 * self._size, dtype=torch.int64)
        self._allgather_base(described, torch.tensor([mine._nnz(), mine.sparse_dim()], dtype=torch.int64)).wait()
        counts, dimensions = described.view(-1, 2).unbind(1)
        total = int(counts.sum())
        if total == 0:
            return lambda: None
        # A tensor of no entries fits all: zero_() makes all its dimensions sparse.
        among = sorted(set(dimensions[counts > 0].tolist()))
        if len(among) > 1:
            raise ValueError(f"allreduce: the ranks' sparse tensors have {dimensions.tolist()} sparse dimensions; give all the same")
        if mine._nnz() == 0:
            mine = torch.sparse_coo_tensor(torch.empty((among[0], 0), dtype=torch.int64), torch.empty((0, *tensor.shape[among[0] :]), dtype=tensor.dtype), tensor.shape)
            mine = mine.coalesce()
        indices, values = mine.indices().t().contiguous(), as_bytes(plain(mine.values()))
        all_indices = torch.empty((total, indices.shape[1]), dtype=torch.int64)
        all_values = torch.empty((total, *mine.values().shape[1:]), dtype=mine.dtype)
        raw = as_bytes(all_values)
        rows = (mine._nnz(), -1 if mine._nnz() == 0 else values.numel() // mine._nnz())
        width = raw.numel() // max(1, total)
        requests = [
            self._submit(native.ALLGATHER, "sparse_indices", 0, indices, all_indices, shape=indices.shape, count=indices.shape[1]),
            self._submit(native.ALLGATHER, "sparse_values", 0, values, raw, shape=(rows[0], width), count=width),
        ]
        work = self._begun("allreduce of a sparse tensor", requests, [tensor])
        work.wait()
        summed = torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.shape).coalesce()
        return lambda: tensor.copy_(summed)

    @collective("ALLREDUCE_COALESCED", "tensors", "AllreduceCoalescedOptions", "op", alike=lambda tensors: tensors)
    def allreduce_coalesced(self, tensors, opts=None) -> Work:
        other = self._other(tensors[0]) if tensors else None
        if other is not None:
            return other.allreduce_coalesced(tensors, opts)
        return self._allreduce_by_plan(list(tensors), opts)

    @collective("REDUCE", "tensors|tensor", "ReduceOptions", "root op timeout", one=0, alike=lambda tensors: tensors)
    def reduce(self, tensors, opts=None) -> Work:
        tensor = one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.reduce(tensors, opts)
        root = self._root("reduce", opts)
        if tensor.numel() == 0:
            return self._begun("reduce", (), [tensor])
        plan = plan_of(opts.reduceOp if opts is not None else _RedOp.SUM, tensor.dtype, self._size)
        request, take = self._reduce_begin(tensor, plan, in_place=root == self._rank)
        finish = None
        if root == self._rank and take is not None:
            finish = lambda: tensor.copy_(take().view(tensor.shape))  # noqa: E731
        return self._begun("reduce", (request,), [tensor], finish, opts)

    def _reduce_scatter(self, out: torch.Tensor, given: torch.Tensor, opts):
        """(request, what is to be done when it has ended) for a flat input of the same number of elements for each rank."""
        plan = plan_of(opts.reduceOp if opts is not None else _RedOp.SUM, out.dtype, self._size)
        flat = plain(given).view(-1)
        if plan.local is not None:
            request, take = self._reduce_begin(flat, plan, in_place=False)
            count = out.numel()
            return request, lambda: out.copy_(take()[self._rank * count : (self._rank + 1) * count].view(out.shape))
        packed = (flat if plan.pack is None else plan.pack(flat)).contiguous()
        direct = plan.unpack is None and has_plain_memory(out) and not overlap(packed, out)
        mine = out if direct else torch.empty((out.numel(), *packed.shape[1:]), dtype=packed.dtype, device=packed.device)
        request = self._submit(native.REDUCESCATTER, "reducescatter", plan.how, packed, mine, prescale=plan.prescale, shape=(self._size, packed.numel() // self._size))
        if direct:
            return request, None
        return request, lambda: out.copy_((mine if plan.unpack is None else plan.unpack(mine, out)).view(out.shape))

    @collective("_REDUCE_SCATTER_BASE", "outputTensor|output inputTensor|input", "ReduceScatterOptions", "op timeout", alike=lambda output, input: [input])
    def reduce_scatter_single(self, output, input, opts=None) -> Work:
        other = self._other(output)
        if other is not None:
            return other._reduce_scatter_base(output, input, opts)
        if input.numel() != output.numel() * self._size:
            raise ValueError(f"reduce_scatter: the input has {input.numel()} elements, not {self._size} times the output's {output.numel()}")
        if output.dtype != input.dtype:
            raise ValueError(f"reduce_scatter: the input is {input.dtype}, the output {output.dtype}; give both the same type")
        if output.numel() == 0:
            return self._begun("reduce_scatter", (), [output])
        request, finish = self._reduce_scatter(output, input, opts)
        return self._begun("reduce_scatter", (request,), [output], finish, opts)

    _reduce_scatter_base = reduce_scatter_single

    @collective("_REDUCE_SCATTER_BASE", "outputs|outputTensors inputs|inputTensors", "ReduceScatterOptions", "op timeout", alike=lambda outputs, inputs: inputs)
    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None) -> Work:
        return self._each(self.reduce_scatter_single, outputs, inputs, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    @collective("REDUCE_SCATTER", "output_tensors|output|outputs input_tensors|input_tensor|input|inputs", "ReduceScatterOptions", "op timeout", one=0, alike=lambda outputs, inputs: inputs[0])
    def reduce_scatter(self, outputs, inputs, opts=None) -> Work:
        output, given = one(outputs), inputs[0]
        other = self._other(output)
        if other is not None:
            return other.reduce_scatter(outputs, inputs, opts)
        if len(given) != self._size:
            raise ValueError(f"reduce_scatter: {len(given)} tensors for {self._size} ranks; give one for each")
        if all(tensor.numel() == output.numel() for tensor in given):
            return self.reduce_scatter_single(output, flat_of(given), opts)
        plan = plan_of(opts.reduceOp if opts is not None else _RedOp.SUM, output.dtype, self._size)
        flat = flat_of(given)
        at = sum(tensor.numel() for tensor in given[: self._rank])
        request, take = self._reduce_begin(flat, plan)
        finish = lambda: output.copy_((flat if take is None else take().view(-1))[at : at + output.numel()].view(output.shape))  # noqa: E731
        return self._begun("reduce_scatter", (request,), [output], finish, opts)
