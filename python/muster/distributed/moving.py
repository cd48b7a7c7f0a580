"""Adds to a process group the collectives that only move data: broadcast, gathers, scatters, all to all."""

from __future__ import annotations

import math
from typing import List, Sequence

import torch
import _muster_native as native
from muster._torch_types import has_plain_memory, plain
from muster.distributed.group import Group, deal_out, flat_of, one, overlap
from muster.distributed.overloads import collective
from muster.distributed.reductions import as_bytes
from muster.distributed.work import Work


class _Received:
    """A request whose ranks send to each other. It fails where they have sent this rank other numbers of elements than it expects of them."""

    def __init__(self, request, what: str, me: int, expected: List[int], wider: int) -> None:
        self._request, self._what, self._me, self._expected, self._wider = request, what, me, expected, wider
        self.poll, self.wait_for = request.poll, request.wait_for

    def wait(self, *seconds: float) -> None:
        told = f"{self._what}: rank {self._me} expects {self._expected} elements of the ranks, and they send it"
        try:
            self._request.wait(*seconds)
        except ValueError as error:
            raise ValueError(f"{told} another number in all: {error}") from None
        sent = [rows // self._wider for rows in self._request.rows()]
        if sent != self._expected:
            raise ValueError(f"{told} {sent}; give what each rank expects the sizes of what the others send it")


def _gathered(outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Returns what is alike on all ranks in an all_gather: the input, or the outputs where they say that ranks give different sizes."""
    return inputs if len({tensor.shape for tensor in outputs[0]}) == 1 else outputs[0]


class MovingGroup(Group):
    """A process group whose collectives add nothing."""

    @collective("BROADCAST", "tensors|tensor", "BroadcastOptions", "root timeout", one=0, alike=lambda tensors: tensors)
    def broadcast(self, tensors, opts=None) -> Work:
        tensor = one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.broadcast(tensors, opts)
        root = self._root("broadcast", opts)
        if tensor.numel() == 0:
            return self._begun("broadcast", (), [tensor])
        whole = plain(tensor)
        raw = as_bytes(whole)
        finish = None
        if raw.data_ptr() != tensor.data_ptr():
            finish = lambda: tensor.copy_(whole)  # noqa: E731
        request = self._submit(native.BROADCAST, "broadcast", root, raw, raw, keep=whole)
        return self._begun("broadcast", (request,), [tensor], finish, opts)

    @collective("_ALLGATHER_BASE", "output input", "AllgatherOptions", alike=lambda output, input: [input])
    def all_gather_single(self, output, input, opts=None) -> Work:
        other = self._other(output)
        if other is not None:
            return other._allgather_base(output, input, opts)
        if output.numel() != input.numel() * self._size:
            raise ValueError(f"all_gather: the output has {output.numel()} elements, not {self._size} times the input's {input.numel()}")
        if output.dtype != input.dtype:
            raise ValueError(f"all_gather: the input is {input.dtype}, the output {output.dtype}; give both the same type")
        if input.numel() == 0:
            return self._begun("all_gather", (), [output])
        whole = output if has_plain_memory(output) else torch.empty(output.shape, dtype=output.dtype, device=output.device)
        given = as_bytes(plain(input))
        if overlap(given, whole):  # in place: the input is a part of the output
            given = given.clone()
        request = self._submit(native.ALLGATHER, "allgather", 0, given, as_bytes(whole), keep=(input, whole))
        return self._begun("all_gather", (request,), [output], None if whole is output else lambda: output.copy_(whole), opts)

    _allgather_base = all_gather_single

    @collective("_ALLGATHER_BASE", "outputs|output_lists inputs|input_list", "AllgatherOptions", alike=lambda outputs, inputs: inputs)
    def all_gather_single_coalesced(self, outputs, inputs, opts=None) -> Work:
        return self._each(self.all_gather_single, outputs, inputs, opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    @collective("ALLGATHER", "output_tensors input_tensors|input_tensor", "AllgatherOptions", one=1, alike=_gathered)
    def allgather(self, outputs, inputs, opts=None) -> Work:
        given, into = one(inputs), outputs[0]
        other = self._other(given)
        if other is not None:
            return other.allgather(outputs, inputs, opts)
        if len(into) != self._size:
            raise ValueError(f"all_gather: {len(into)} output tensors for {self._size} ranks; give one for each")
        total = sum(tensor.numel() for tensor in into)
        if given.numel() != into[self._rank].numel():
            raise ValueError(f"all_gather: this rank gives {given.numel()} elements, its output has room for {into[self._rank].numel()}")
        if total == 0:
            return self._begun("all_gather", (), list(into))
        flat = torch.empty(total, dtype=given.dtype, device=given.device)
        raw, out = as_bytes(plain(given)), as_bytes(flat)
        request = self._submit(native.ALLGATHER, "allgather", 0, raw, out, count=out.numel(), keep=(given, flat))
        return self._begun("all_gather", (request,), list(into), lambda: deal_out(flat, into), opts)

    @collective("ALLGATHER_COALESCED", "output_lists input_list", "AllgatherOptions", alike=lambda output_lists, inputs: inputs)
    def allgather_coalesced(self, output_lists, inputs, opts=None) -> Work:
        # output_lists[r][i] receives rank r's i-th tensor
        if len(output_lists) != self._size or any(len(of_rank) != len(inputs) for of_rank in output_lists):
            lengths = [len(of_rank) for of_rank in output_lists]
            raise ValueError(f"all_gather_coalesced: output lists of {lengths} tensors; give one list for each of {self._size} ranks, of {len(inputs)} each")
        works = [self.allgather([list(into)], [given], opts) for into, given in zip(zip(*output_lists), inputs)]
        return self._together(works, [tensor for into in output_lists for tensor in into], opts)

    def _exchange(self, what: str, word: str, given: torch.Tensor, flat: torch.Tensor, splits: List[int], expected: List[int]) -> _Received:
        """An alltoall of elements: both flat, of one type, so many for each rank and expected of each."""
        raw, out = as_bytes(plain(given)), as_bytes(flat)
        wider = raw.numel() // given.numel() if given.numel() else (2 if given.dtype.is_complex and raw.dtype is not torch.uint8 else given.element_size() // raw.element_size())
        splits = [rows * wider for rows in splits]
        request = self._submit(native.ALLTOALL, word, 0, raw.reshape(-1), out.reshape(-1), splits=splits, count=0, shape=(raw.numel(),), keep=(given, flat))
        return _Received(request, what, self._ranks[self._rank] if self._ranks else self._rank, expected, wider)

    @collective("GATHER", "output_tensors input_tensors|input_tensor", "GatherOptions", "root timeout", one=1, alike=lambda outputs, inputs: inputs)
    def gather(self, outputs, inputs, opts=None) -> Work:
        given = one(inputs)
        other = self._other(given)
        if other is not None:
            return other.gather(outputs, inputs, opts)
        root = self._root("gather", opts)
        into = list(outputs[0]) if root == self._rank else []
        if root == self._rank and len(into) != self._size:
            raise ValueError(f"gather: {len(into)} output tensors for {self._size} ranks; give one for each")
        flat = torch.empty(sum(tensor.numel() for tensor in into), dtype=given.dtype, device=given.device)
        splits = [given.numel() if rank == root else 0 for rank in range(self._size)]
        expected = [tensor.numel() for tensor in into] or [0] * self._size
        request = self._exchange("gather", f"gather{root}", given.reshape(-1), flat, splits, expected)
        return self._begun("gather", (request,), into, (lambda: deal_out(flat, into)) if into else None, opts)

    @collective("GATHER", "output input", "GatherOptions", alike=lambda output, input: [input])
    def gather_single(self, output, input, opts=None) -> Work:
        root = self._root("gather", opts)
        return self.gather([list(output.view(self._size, *input.shape).unbind(0))] if root == self._rank else [], [input], opts)

    gather_into_tensor = gather_single

    @collective("SCATTER", "output_tensors|output_tensor input_tensors", "ScatterOptions", "root timeout", one=0, alike=lambda outputs, inputs: outputs)
    def scatter(self, outputs, inputs, opts=None) -> Work:
        output = one(outputs)
        other = self._other(output)
        if other is not None:
            return other.scatter(outputs, inputs, opts)
        root = self._root("scatter", opts)
        given = list(inputs[0]) if root == self._rank else []
        if root == self._rank and len(given) != self._size:
            raise ValueError(f"scatter: {len(given)} input tensors for {self._size} ranks; give one for each")
        flat = flat_of(given) if given else torch.empty(0, dtype=output.dtype, device=output.device)
        mine = torch.empty(output.numel(), dtype=output.dtype, device=output.device)
        splits = [tensor.numel() for tensor in given] if given else [0] * self._size
        expected = [output.numel() if rank == root else 0 for rank in range(self._size)]
        request = self._exchange("scatter", f"scatter{root}", flat, mine, splits, expected)
        return self._begun("scatter", (request,), [output], lambda: output.copy_(mine.view(output.shape)), opts)

    @collective("ALLTOALL_BASE", "output_tensor|output input_tensor|input ?output_split_sizes ?input_split_sizes", "AllToAllOptions")
    def all_to_all_single(self, output, input, output_splits=None, input_splits=None, opts=None) -> Work:
        other = self._other(output)
        if other is not None:
            return other.alltoall_base(output, input, output_splits, input_splits, opts)
        if output.dtype != input.dtype:
            raise ValueError(f"all_to_all: the input is {input.dtype}, the output {output.dtype}; give both the same type")
        row = math.prod(input.shape[1:])
        if input_splits:
            if len(input_splits) != self._size or sum(input_splits) != input.shape[0]:
                raise ValueError(f"all_to_all: the input has {input.shape[0]} rows, its splits are {list(input_splits)} for {self._size} ranks")
            splits = [rows * row for rows in input_splits]
        else:
            if input.shape[0] % self._size:
                raise ValueError(f"all_to_all: {input.shape[0]} rows cannot be dealt out evenly to {self._size} ranks; give splits")
            splits = [input.numel() // self._size] * self._size
        return self._all_to_all(output, input, splits, output_splits, row, opts)

    alltoall_base = all_to_all_single

    def _all_to_all(self, output, input, splits, output_splits, row, opts) -> Work:
        if output_splits and (len(output_splits) != self._size or sum(output_splits) != output.shape[0]):
            raise ValueError(f"all_to_all: the output has {output.shape[0]} rows, its splits are {list(output_splits)} for {self._size} ranks")
        if not output_splits and output.shape[0] % self._size:
            raise ValueError(f"all_to_all: the output's {output.shape[0]} rows cannot come evenly from {self._size} ranks; give splits")
        expected = [rows * row for rows in output_splits or [output.shape[0] // self._size] * self._size]
        whole = output if has_plain_memory(output) and not overlap(input, output) else torch.empty(output.shape, dtype=output.dtype, device=output.device)
        request = self._exchange("all_to_all", "alltoall", plain(input).view(-1), whole.view(-1), splits, expected)
        return self._begun("all_to_all", (request,), [output], None if whole is output else lambda: output.copy_(whole), opts)

    @collective("ALLTOALL", "output_tensors|output_tensor|output input_tensors|input_tensor|input", "AllToAllOptions")
    def alltoall(self, outputs, inputs, opts=None) -> Work:
        outputs, inputs = list(outputs), list(inputs)
        other = self._other(outputs[0])
        if other is not None:
            return other.alltoall(outputs, inputs, opts)
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(f"all_to_all: {len(inputs)} input and {len(outputs)} output tensors for {self._size} ranks; give one for each")
        flat = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=outputs[0].dtype, device=outputs[0].device)
        splits, expected = [tensor.numel() for tensor in inputs], [tensor.numel() for tensor in outputs]
        request = self._exchange("all_to_all", "alltoall", flat_of(inputs), flat, splits, expected)
        return self._begun("all_to_all", (request,), outputs, lambda: deal_out(flat, outputs), opts)
