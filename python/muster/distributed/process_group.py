"""Runs torch.distributed's collectives over muster: the process group that `init_process_group("muster")` makes."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
import _muster_native as native
from muster import world
from muster.distributed import communicators
from muster.distributed.reductions import TYPES, Plan, as_bytes, plan_of
from muster.distributed.work import Ended, Work
from muster.errors import CollectiveError

_SHORT = {native.F32: "f32", native.F64: "f64", native.F16: "f16", native.BF16: "bf16", native.I32: "i32", native.I64: "i64", native.U8: "u8", native.I8: "i8"}
_LARGE = 1 << 20  # bytes
_KEEPS_WORKS = not hasattr(torch.distributed, "BackendConfig") and torch.__version__.startswith("1.")
_RedOp = getattr(dist.ReduceOp, "RedOpType", dist.ReduceOp)
_FAST = {
    (op, dtype): how
    for op, how in ((_RedOp.SUM, native.SUM), (_RedOp.AVG, native.AVERAGE), (_RedOp.MAX, native.MAX), (_RedOp.MIN, native.MIN))
    for dtype in TYPES
    if op != _RedOp.AVG or dtype.is_floating_point
}


class _Names:
    """The names of requests of one kind, type and size: so many in turn, so that the ranks need not agree on a name again each time it comes."""

    __slots__ = ("names", "requests", "next")

    def __init__(self, name: str, size_in_bytes: int) -> None:
        turns = 8 if size_in_bytes < _LARGE else 4
        self.names = [f"{name}.{turn}" for turn in range(turns)]
        self.requests: List[Any] = [None] * turns
        self.next = 0


def _one(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors were given to a collective of one tensor a rank; call it for each")
    return tensors[0]


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return tensors[0].reshape(-1) if len(tensors) == 1 else torch.cat([tensor.reshape(-1) for tensor in tensors])


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two contiguous tensors share memory: muster takes an input apart from its output."""
    at, to = a.data_ptr(), b.data_ptr()
    return at < to + b.numel() * b.element_size() and to < at + a.numel() * a.element_size()


def _parts(flat: torch.Tensor, into: Sequence[torch.Tensor]) -> None:
    """Deals out what lies one after the other."""
    at = 0
    for tensor in into:
        count = tensor.numel()
        tensor.copy_(flat[at : at + count].view(tensor.shape))
        at += count


class MusterProcessGroup(dist.ProcessGroup):
    """A process group. torch.distributed calls it; its methods are those of torch's ProcessGroup.

    Every member calls the same collectives in the same order. The calls are matched by kind, type, size and their number among such.
    """

    def __init__(self, store, rank: int, size: int, timeout: float, label: str, ranks: List[int], communicator: communicators.Communicator, mail: Callable[[], Any]) -> None:
        try:
            super().__init__(store, rank, size)
        except TypeError:  # torch 1.13
            super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._timeout = timeout
        self._label = label
        self._ranks = ranks  # of the world; empty: all
        self._communicator: Optional[communicators.Communicator] = communicator
        self._comm = communicator.comm
        self._set = communicator.set
        self._make_mail = mail
        self._mail: Any = None
        self._group_name, self._group_desc = label, "undefined"
        self._names: Dict[Tuple[str, int, int], _Names] = {}
        self._calls = 0
        self._coalescing: Optional[List[Work]] = None
        self._kept: Deque[Work] = deque()
        self._others: Optional[Dict[str, Any]] = None

    # ------------------------------------------------------------------------------------------------ who

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    getRank = rank
    getSize = size

    def name(self) -> str:
        return "muster"

    getBackendName = name
    _get_backend_name = name

    # torch 2 keeps the name in the backends of a group, of which a group in Python has none.
    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, text: str) -> None:
        self._group_desc = text

    def getGroupDesc(self) -> str:
        return self._group_desc

    @property
    def supports_coalescing(self) -> bool:
        return False

    @property
    def supports_splitting(self) -> bool:
        return False

    def _get_backend(self, device):
        other = self._other_for(torch.device(device).type)
        return self if other is None else other._get_backend(device) if hasattr(other, "_get_backend") else other

    def _get_sequence_number_for_group(self) -> int:
        return self._calls

    def _set_sequence_number_for_group(self) -> None:
        pass

    def set_timeout(self, timeout) -> None:
        self._timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    # ------------------------------------------------------------------------------------------------ other backends

    def _find_others(self) -> None:
        """Which kinds of device another backend serves ("cpu:muster,cuda:nccl"), of which torch leaves the Python group to find out."""
        self._others = {}
        config = getattr(getattr(dist.distributed_c10d, "_world", None), "pg_backend_config", {}).get(self, "")
        for part in str(config).split(","):
            device, colon, backend = part.partition(":")
            if colon and backend.lower() != "muster":
                self._others[device] = backend.lower()

    def _other_for(self, device: str):
        """The group that serves this kind of device, made by its first call, collectively; None: this one does."""
        if self._others is None:
            self._find_others()
        other = self._others.get(device)
        if other is None or not isinstance(other, str):
            return other
        ranks = dist.get_process_group_ranks(self)
        made = dist.new_group(ranks, backend=other, use_local_synchronization=len(ranks) < dist.get_world_size())
        self._others[device] = made
        return made

    def _other(self, tensor: torch.Tensor):
        if self._others is None:
            self._find_others()
        return self._other_for(tensor.device.type) if self._others else None

    # ------------------------------------------------------------------------------------------------ requests

    def _place(self, tensor: torch.Tensor) -> Tuple[int, int]:
        if tensor.is_sparse:
            raise ValueError("a sparse tensor has no one memory: only allreduce, SUM, takes it; use to_dense()")
        if tensor.device.type == "cpu":
            return native.HOST, 0
        if tensor.device.type == "cuda":
            return native.DEVICE, torch.cuda.current_stream(tensor.device).cuda_stream
        raise ValueError(f"a tensor on {tensor.device} cannot be reached; move it to the CPU or to a CUDA device")

    def _turn(self, kind: str, dtype: int, count: int, width: int) -> Tuple[_Names, int]:
        """The names of such requests and whose turn it is. Waits for the request that has had that turn before."""
        key = (kind, dtype, count)
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = _Names(f"c10d.{self._label}.{kind}.{_SHORT[dtype]}.{count}", count * width)
        turn = names.next
        names.next = turn + 1 if turn + 1 < len(names.names) else 0
        before = names.requests[turn]
        if before is not None and not before.poll() and not before.wait_for(self._timeout):
            before.wait(0.001)
        self._calls += 1
        return names, turn

    def _submit(self, kind: int, word: str, how: int, given: torch.Tensor, out: torch.Tensor, splits=None, prescale: float = 1.0, shape=None, count=None, keep=None):
        """Submits one contiguous tensor of a type that muster knows. `count` goes into the name, which must be the same on all ranks."""
        memory, stream = self._place(given)
        dtype = TYPES[given.dtype]
        names, turn = self._turn(word, dtype, given.numel() if count is None else count, given.element_size())
        request = self._comm.submit(
            kind,
            how,
            splits,
            names.names[turn],
            given.data_ptr(),
            out.data_ptr(),
            (given.numel(),) if shape is None else shape,
            dtype,
            prescale,
            1.0,
            self._set,
            0,
            0,
            memory,
            stream,
            (given, out, keep),
            out.numel(),
        )
        names.requests[turn] = request
        return request

    def _begun(self, what: str, requests: Sequence[Any], result: List[torch.Tensor], finish: Optional[Callable[[], None]] = None, options=None) -> Work:
        work = Work(self, what, requests, result, finish, options) if requests else Ended(self, result)
        if _KEEPS_WORKS:  # torch 1.13 holds only the C++ part of what it is given, whose wait() never returns without this one
            self._kept.append(work)
            while len(self._kept) > 4096 and self._kept[0].is_completed():
                self._kept.popleft()
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work

    def _forget(self, work: Work) -> None:
        if self._kept:
            try:
                self._kept.remove(work)
            except ValueError:
                pass

    def _explain(self, error: Exception) -> Exception:
        """What `wait` raises of it: with the ranks of the world, where this group has only some of them."""
        if not isinstance(error, CollectiveError):
            return error
        if self._communicator is not None:
            self._communicator.note_failure()
        if not self._ranks or error.code == native.E_USAGE or getattr(error, "_of_world", False):
            return error
        ranks = tuple(self._ranks[rank] for rank in error.ranks if rank < len(self._ranks))
        told = CollectiveError(f"{error.reason} (ranks are those of the process group {self._label}, which has the ranks {self._ranks} of all)", error.code, ranks)
        told.tensor = error.tensor
        return told

    # ------------------------------------------------------------------------------------------------ reductions

    def allreduce(self, tensors, opts=None) -> Work:
        if len(tensors) != 1:
            return self.allreduce_coalesced(tensors, opts)
        tensor = tensors[0]
        if self._others != {}:
            other = self._other(tensor)
            if other is not None:
                return other.allreduce(tensors, opts)
        op = _RedOp.SUM if opts is None else getattr(opts.reduceOp, "op", opts.reduceOp)
        how = _FAST.get((op, tensor.dtype))
        if how is None or tensor.is_sparse or not tensor.is_contiguous():
            return self._allreduce_by_plan([tensor], opts)
        if tensor.numel() == 0:
            return self._begun("allreduce", (), [tensor])
        return self._begun("allreduce", (self._submit(native.ALLREDUCE, "allreduce", how, tensor, tensor),), [tensor], None, opts)

    def _allreduce_by_plan(self, tensors, opts) -> Work:
        op = opts.reduceOp if opts is not None else _RedOp.SUM
        requests, after = [], []
        for tensor in tensors:
            if tensor.is_sparse:
                after.append(self._allreduce_sparse(tensor, op))
                continue
            if tensor.numel() == 0:
                continue
            request, take = self._reduce_begin(tensor, plan_of(op, tensor.dtype, self._size))
            requests.append(request)
            if take is not None:
                after.append(lambda tensor=tensor, take=take: tensor.copy_(take().view(tensor.shape)))

        def finish() -> None:
            for step in after:
                step()

        if after and not requests:
            finish()
        return self._begun("allreduce", requests, list(tensors), finish if after else None, opts)

    def _reduce_begin(self, tensor: torch.Tensor, plan: Plan, in_place: bool = True):
        """Begins to reduce a tensor. (request, what gives the result; None where it is in the tensor itself)."""
        packed = tensor if plan.pack is None else plan.pack(tensor)
        packed = packed.contiguous()
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
        count = torch.tensor([mine._nnz()], dtype=torch.int64)
        counts = torch.empty(self._size, dtype=torch.int64)
        self._allgather_base(counts, count).wait()
        indices, values = mine.indices().t().contiguous(), as_bytes(mine.values().contiguous())
        total = int(counts.sum())
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

    def allreduce_coalesced(self, tensors, opts=None) -> Work:
        other = self._other(tensors[0]) if tensors else None
        if other is not None:
            return other.allreduce_coalesced(tensors, opts)
        return self._allreduce_by_plan(list(tensors), opts)

    def reduce(self, tensors, opts=None) -> Work:
        tensor = _one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.reduce(tensors, opts)
        root = 0 if opts is None else opts.rootRank
        if tensor.numel() == 0:
            return self._begun("reduce", (), [tensor])
        plan = plan_of(opts.reduceOp if opts is not None else _RedOp.SUM, tensor.dtype, self._size)
        request, take = self._reduce_begin(tensor, plan, in_place=root == self._rank)
        finish = None
        if root == self._rank and take is not None:
            finish = lambda: tensor.copy_(take().view(tensor.shape))  # noqa: E731
        return self._begun("reduce", (request,), [tensor], finish, opts)

    def _reduce_scatter(self, out: torch.Tensor, given: torch.Tensor, opts):
        """(request, what is to be done when it has ended) for a flat input of as many elements for each rank."""
        plan = plan_of(opts.reduceOp if opts is not None else _RedOp.SUM, out.dtype, self._size)
        flat = given.contiguous().view(-1)
        if plan.local is not None:
            request, take = self._reduce_begin(flat, plan, in_place=False)
            count = out.numel()
            return request, lambda: out.copy_(take()[self._rank * count : (self._rank + 1) * count].view(out.shape))
        packed = (flat if plan.pack is None else plan.pack(flat)).contiguous()
        direct = plan.unpack is None and out.is_contiguous() and not _overlap(packed, out)
        mine = out if direct else torch.empty((out.numel(), *packed.shape[1:]), dtype=packed.dtype, device=packed.device)
        request = self._submit(native.REDUCESCATTER, "reducescatter", plan.how, packed, mine, prescale=plan.prescale, shape=(self._size, packed.numel() // self._size))
        if direct:
            return request, None
        return request, lambda: out.copy_((mine if plan.unpack is None else plan.unpack(mine, out)).view(out.shape))

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

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None) -> Work:
        return self._together([self.reduce_scatter_single(output, input, opts) for output, input in zip(outputs, inputs)], list(outputs), opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs, inputs, opts=None) -> Work:
        output, given = _one(outputs), inputs[0]
        other = self._other(output)
        if other is not None:
            return other.reduce_scatter(outputs, inputs, opts)
        if len(given) != self._size:
            raise ValueError(f"reduce_scatter: {len(given)} tensors for {self._size} ranks; give one for each")
        if all(tensor.numel() == output.numel() for tensor in given):
            return self.reduce_scatter_single(output, _flat(given), opts)
        plan = plan_of(opts.reduceOp if opts is not None else _RedOp.SUM, output.dtype, self._size)
        flat = _flat(given)
        at = sum(tensor.numel() for tensor in given[: self._rank])
        request, take = self._reduce_begin(flat, plan)
        finish = lambda: output.copy_((flat if take is None else take().view(-1))[at : at + output.numel()].view(output.shape))  # noqa: E731
        return self._begun("reduce_scatter", (request,), [output], finish, opts)

    # ------------------------------------------------------------------------------------------------ nothing is added

    def broadcast(self, tensors, opts=None) -> Work:
        tensor = _one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.broadcast(tensors, opts)
        if tensor.numel() == 0:
            return self._begun("broadcast", (), [tensor])
        whole = tensor.contiguous()
        raw = as_bytes(whole)
        finish = None
        if raw.data_ptr() != tensor.data_ptr():
            finish = lambda: tensor.copy_(whole)  # noqa: E731
        request = self._submit(native.BROADCAST, "broadcast", 0 if opts is None else opts.rootRank, raw, raw, keep=whole)
        return self._begun("broadcast", (request,), [tensor], finish, opts)

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
        whole = output if output.is_contiguous() else torch.empty(output.shape, dtype=output.dtype, device=output.device)
        given = as_bytes(input.contiguous())
        if _overlap(given, whole):  # in place: the input is a part of the output
            given = given.clone()
        request = self._submit(native.ALLGATHER, "allgather", 0, given, as_bytes(whole), keep=(input, whole))
        return self._begun("all_gather", (request,), [output], None if whole is output else lambda: output.copy_(whole), opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs, inputs, opts=None) -> Work:
        return self._together([self.all_gather_single(output, input, opts) for output, input in zip(outputs, inputs)], list(outputs), opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather(self, outputs, inputs, opts=None) -> Work:
        given, into = _one(inputs), outputs[0]
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
        raw, out = as_bytes(given.contiguous()), as_bytes(flat)
        request = self._submit(native.ALLGATHER, "allgather", 0, raw, out, count=out.numel(), keep=(given, flat))
        return self._begun("all_gather", (request,), list(into), lambda: _parts(flat, into), opts)

    def allgather_coalesced(self, output_lists, inputs, opts=None) -> Work:
        # output_lists[i][r]: rank r's i-th tensor in torch 2, whose gloo wants output_lists[r][i]; told apart by their lengths
        if len(output_lists) == self._size and len(inputs) != self._size:
            output_lists = [list(of_one) for of_one in zip(*output_lists)]
        works = [self.allgather([into], [given], opts) for into, given in zip(output_lists, inputs)]
        return self._together(works, [tensor for into in output_lists for tensor in into], opts)

    def _exchange(self, word: str, given: torch.Tensor, flat: torch.Tensor, splits: Optional[List[int]], count: int):
        """An alltoall of elements: both flat, of one type."""
        raw, out = as_bytes(given.contiguous()), as_bytes(flat)
        wider = raw.numel() // given.numel() if given.numel() else (2 if given.dtype.is_complex and raw.dtype is not torch.uint8 else given.element_size() // raw.element_size())
        if splits is not None:
            splits = [rows * wider for rows in splits]
        return self._submit(native.ALLTOALL, word, 0, raw.reshape(-1), out.reshape(-1), splits=splits, count=count, shape=(raw.numel(),), keep=(given, flat))

    def gather(self, outputs, inputs, opts=None) -> Work:
        given = _one(inputs)
        other = self._other(given)
        if other is not None:
            return other.gather(outputs, inputs, opts)
        root = 0 if opts is None else opts.rootRank
        into = list(outputs[0]) if root == self._rank else []
        if root == self._rank and len(into) != self._size:
            raise ValueError(f"gather: {len(into)} output tensors for {self._size} ranks; give one for each")
        flat = torch.empty(sum(tensor.numel() for tensor in into), dtype=given.dtype, device=given.device)
        splits = [given.numel() if rank == root else 0 for rank in range(self._size)]
        request = self._exchange(f"gather{root}", given.reshape(-1), flat, splits, 0)
        return self._begun("gather", (request,), into, (lambda: _parts(flat, into)) if into else None, opts)

    def gather_single(self, output, input, opts=None) -> Work:
        root = 0 if opts is None else opts.rootRank
        return self.gather([list(output.view(self._size, *input.shape).unbind(0))] if root == self._rank else [], [input], opts)

    gather_into_tensor = gather_single

    def scatter(self, outputs, inputs, opts=None) -> Work:
        output = _one(outputs)
        other = self._other(output)
        if other is not None:
            return other.scatter(outputs, inputs, opts)
        root = 0 if opts is None else opts.rootRank
        given = list(inputs[0]) if root == self._rank else []
        if root == self._rank and len(given) != self._size:
            raise ValueError(f"scatter: {len(given)} input tensors for {self._size} ranks; give one for each")
        flat = _flat(given) if given else torch.empty(0, dtype=output.dtype, device=output.device)
        mine = torch.empty(output.numel(), dtype=output.dtype, device=output.device)
        splits = [tensor.numel() for tensor in given] if given else [0] * self._size
        request = self._exchange(f"scatter{root}", flat, mine, splits, 0)
        return self._begun("scatter", (request,), [output], lambda: output.copy_(mine.view(output.shape)), opts)

    def all_to_all_single(self, output, input, output_splits=None, input_splits=None, opts=None) -> Work:
        other = self._other(output)
        if other is not None:
            return other.alltoall_base(output, input, output_splits, input_splits, opts)
        if output.dtype != input.dtype:
            raise ValueError(f"all_to_all: the input is {input.dtype}, the output {output.dtype}; give both the same type")
        row = 1
        for extent in input.shape[1:]:
            row *= extent
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
        if output_splits and sum(output_splits) != output.shape[0]:
            raise ValueError(f"all_to_all: the output has {output.shape[0]} rows, its splits are {list(output_splits)}")
        whole = output if output.is_contiguous() and not _overlap(input, output) else torch.empty(output.shape, dtype=output.dtype, device=output.device)
        request = self._exchange("alltoall", input.contiguous().view(-1), whole.view(-1), splits, 0)
        return self._begun("all_to_all", (request,), [output], None if whole is output else lambda: output.copy_(whole), opts)

    def alltoall(self, outputs, inputs, opts=None) -> Work:
        outputs, inputs = list(outputs), list(inputs)
        other = self._other(outputs[0])
        if other is not None:
            return other.alltoall(outputs, inputs, opts)
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(f"all_to_all: {len(inputs)} input and {len(outputs)} output tensors for {self._size} ranks; give one for each")
        flat = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=outputs[0].dtype, device=outputs[0].device)
        request = self._exchange("alltoall", _flat(inputs), flat, [tensor.numel() for tensor in inputs], 0)
        return self._begun("all_to_all", (request,), outputs, lambda: _parts(flat, outputs), opts)

    # ------------------------------------------------------------------------------------------------ barriers

    def _submit_barrier(self):
        nothing = torch.zeros(1, dtype=torch.uint8)
        return self._submit(native.ALLREDUCE, "barrier", native.MAX, nothing, nothing)

    def barrier(self, opts=None) -> Work:
        return self._begun("barrier", (self._submit_barrier(),), [], None, opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks are here. After `timeout` the CollectiveError names the ranks that are not, all of them in any case."""
        Work(self, "barrier", (self._submit_barrier(),), [], None, None).wait(timeout)

    # ------------------------------------------------------------------------------------------------ several at once

    def _together(self, works: List[Work], result: List[torch.Tensor], opts) -> Work:
        def finish() -> None:
            for work in works:
                work.wait()

        requests = [request for work in works for request in work._requests]
        return self._begun("coalesced", requests, result, finish, opts)

    def start_coalescing(self, device=None) -> None:
        self._coalescing = []

    def end_coalescing(self, device=None) -> Work:
        works, self._coalescing = self._coalescing or [], None
        return self._together(works, [tensor for work in works for tensor in work._result], None)

    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing

    # ------------------------------------------------------------------------------------------------ messages

    def _messages(self):
        if self._mail is None:
            self._mail = self._make_mail()
        return self._mail

    def send(self, tensors, dst: int, tag: int = 0) -> Work:
        tensor = _one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.send(tensors, dst, tag)
        return self._begun("send", (self._messages().send(tensor, dst, tag),), [tensor])

    def recv(self, tensors, src: int, tag: int = 0) -> Work:
        tensor = _one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.recv(tensors, src, tag)
        return self._receive(tensor, src, tag)

    def recv_anysource(self, tensors, tag: int = 0) -> Work:
        return self._receive(_one(tensors), -1, tag)

    recvAnysource = recv_anysource

    def _receive(self, tensor: torch.Tensor, source: int, tag: int) -> Work:
        direct = tensor.is_contiguous() and tensor.device.type == "cpu"
        whole = tensor.detach() if direct else torch.empty(tensor.shape, dtype=tensor.dtype)
        request = self._messages().receive(whole, source, tag)
        work = self._begun("recv", (request,), [tensor], None if direct else lambda: tensor.copy_(whole))
        request.when_known(lambda sender: setattr(work, "_source", sender))
        return work

    # ------------------------------------------------------------------------------------------------ end

    def shutdown(self) -> None:
        """Ends the group on this rank. Does not wait for the others."""
        if self._communicator is None:
            return
        communicator, self._communicator = self._communicator, None
        if self._mail is not None:
            self._mail.close()
        communicator.end()

    abort = shutdown

    def __del__(self) -> None:
        try:
            self.shutdown()
        except Exception:  # noqa: BLE001  the interpreter may be ending
            pass


def create(options, backend_options=None) -> MusterProcessGroup:
    """Makes a process group. Collective over its members; torch.distributed calls it.

    Raises:
        CollectiveError: members are missing or cannot reach each other.
    """
    store, rank, size = options.store, options.group_rank, options.group_size
    timeout = options.timeout.total_seconds()
    ranks = list(options.global_ranks_in_group)
    if ranks == list(range(size)) and communicators.is_joined(rank, size):
        ranks = []
    label = str(options.group_id)[:12]
    if ranks and world.is_initialized() and world.cross_size() > 1:
        communicator = communicators.of_world(ranks, label)
    elif ranks:
        communicator = communicators.of_members(store, rank, size, timeout)
    else:
        communicator = communicators.of_all(store, rank, size, timeout)

    def mail():
        from muster.distributed.messages import Mail

        def name_of(peer: int) -> str:
            number = ranks[peer] if ranks else peer
            return f"rank {number} on {communicator.hosts[peer]}" if communicator.hosts else f"rank {number}"

        return Mail(store, rank, size, timeout, communicator.nodes, communicators.place(), name_of)

    return MusterProcessGroup(store, rank, size, timeout, label, ranks, communicator, mail)
