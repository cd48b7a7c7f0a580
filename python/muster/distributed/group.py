"""Holds what a process group's collectives share: who its ranks are, other backends beside it, and how requests are named, submitted and waited for."""

from __future__ import annotations

import re
from collections import deque
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
import _muster_native as native
from muster.distributed import communicators
from muster.distributed.fingerprints import comparison
from muster.distributed.lost_works import loses_works
from muster.distributed.reductions import TYPES
from muster.distributed.work import Ended, Work
from muster._torch_types import apart, sharing
from muster.errors import CollectiveError, MessageError, unmet_calls

_SHORT = {native.F32: "f32", native.F64: "f64", native.F16: "f16", native.BF16: "bf16", native.I32: "i32", native.I64: "i64", native.U8: "u8", native.I8: "i8"}
_LARGE = 1 << 20  # bytes


class _Names:
    """The names of requests of one kind, type and size: so many in turn, so that the ranks need not agree on a name again each time it comes."""

    __slots__ = ("names", "requests", "next")

    def __init__(self, name: str, size_in_bytes: int) -> None:
        turns = 8 if size_in_bytes < _LARGE else 4
        self.names = [f"{name}.{turn}" for turn in range(turns)]
        self.requests: List[Any] = [None] * turns
        self.next = 0


def one(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors were given to a collective of one tensor a rank; call it for each")
    return tensors[0]


def flat_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return tensors[0].reshape(-1) if len(tensors) == 1 else torch.cat([tensor.reshape(-1) for tensor in tensors])


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Returns whether two contiguous tensors share memory: muster takes an input apart from its output."""
    at, to = a.data_ptr(), b.data_ptr()
    return at < to + b.numel() * b.element_size() and to < at + a.numel() * a.element_size()


def deal_out(flat: torch.Tensor, into: Sequence[torch.Tensor]) -> None:
    """Deals out what lies one after the other."""
    at = 0
    for tensor in into:
        count = tensor.numel()
        tensor.copy_(flat[at : at + count].view(tensor.shape))
        at += count


class Left:
    """Stands for the communicator of a group that has none, to refuse what is begun."""

    def __init__(self, why: str) -> None:
        self._why = why

    def submit(self, *_arguments: Any, **_more: Any) -> Any:
        raise ValueError(self._why)


DESTROYED = (
    "this process group has been destroyed; use one that was made since, and make DistributedDataParallel objects and whatever else keeps this one anew: "
    "model = DistributedDataParallel(model.module)"
)
UNCONFIGURED = "this process group has no members yet; call torch.distributed._reconfigure(uuid, handles) first, on all of them"


class Group(dist.ProcessGroup):
    """A process group without collectives."""

    def __init__(self, store, rank: int, size: int, timeout: float, label: str, ranks: List[int]) -> None:
        try:
            super().__init__(dist.HashStore(), rank, size)  # it would keep the real one as long as anyone keeps the group
        except TypeError:  # torch 1.13
            super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._timeout = timeout
        self._label = label
        self._ranks = ranks  # of the world; empty: all
        self._communicator: Optional[communicators.Communicator] = None
        self._comm: Any = Left(UNCONFIGURED)
        self._set = 0
        self._store = store
        self._splits = 0
        self._is_split = False
        self._mail: Any = None
        self._group_name, self._group_desc = label, "undefined"
        self._last_unmet = ""
        self._names: Dict[Tuple[str, int, int], _Names] = {}
        self._calls = 0
        self._coalescing: Optional[List[Work]] = None
        self._keeps_works = loses_works()
        self._kept: Deque[Work] = deque()
        self._others: Optional[Dict[str, Any]] = None
        self._compared = comparison()

    def _enter(self, communicator: communicators.Communicator) -> None:
        """Has its collectives run over this one from now on."""
        self._communicator = communicator
        self._comm, self._set = communicator.comm, communicator.set

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
    def group_name(self) -> str:
        return self._group_name

    @property
    def group_desc(self) -> str:
        return self._group_desc

    @property
    def _device_types(self) -> List[torch.device]:
        if not self._is_split and self not in getattr(getattr(dist.distributed_c10d, "_world", None), "pg_map", {}):
            return []  # it is being made: torch would attach a recorder to the C++ group, which has no backend
        if self._others is None:
            self._find_others()
        names = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
        return [torch.device(name) for name in dict.fromkeys([*names, *self._others])]

    def _get_backend(self, device):
        other = self._other_for(torch.device(device).type)
        return self if other is None else other._get_backend(device) if hasattr(other, "_get_backend") else other

    def _get_sequence_number_for_group(self) -> int:
        return self._calls

    def _set_sequence_number_for_group(self) -> None:
        pass

    @property
    def options(self) -> SimpleNamespace:
        """Returns what torch asks of a backend: its timeout, for groups made of this one."""
        return SimpleNamespace(backend="muster", _timeout=timedelta(seconds=self._timeout))

    def set_timeout(self, timeout) -> None:
        self._timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    # ------------------------------------------------------------------------------------------------ other backends

    def _find_others(self) -> None:
        """Finds which kinds of device another backend serves ("cpu:muster,cuda:nccl"): torch leaves that to the Python group."""
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

    def _root(self, what: str, opts) -> int:
        """The root that the options name; rank 0 without."""
        root = 0 if opts is None else opts.rootRank
        if not 0 <= root < self._size:
            raise ValueError(f"{what}: there is no rank {root} in a group of {self._size}; the root is counted within the group")
        return root

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
        tensor = (names.names[turn], given.data_ptr(), out.data_ptr(), (given.numel(),) if shape is None else shape, dtype)
        try:
            request = self._comm.submit(
                kind, how, tensor, splits=splits, prescale=prescale, set=self._set, memory=memory, stream=stream, keep=(given, out, keep), out_elements=out.numel()
            )
        except CollectiveError as error:
            raise self._explain(error, self._communicator) from None
        names.requests[turn] = request
        return request

    def _begun(self, what: str, requests: Sequence[Any], result: List[torch.Tensor], finish: Optional[Callable[[], None]] = None, options=None) -> Work:
        work = Work(self, what, requests, result, finish, options) if requests else Ended(self, result)
        if self._keeps_works:  # C++ holds its own half alone, whose wait() never returns without this one
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

    def _explain(self, error: Exception, communicator: Optional[communicators.Communicator]) -> Exception:
        """Returns what `wait` raises of it: in text and attributes with the ranks of the world, where this group has only some of them."""
        if not isinstance(error, CollectiveError) or isinstance(error, MessageError):
            return error
        unmet = unmet_calls(error.reason)[1]
        if unmet and unmet != self._last_unmet:  # all that was under way has failed, on all ranks: the turns begin anew
            self._last_unmet = unmet
            self._names.clear()
        elif not unmet and communicator is not None:
            communicator.note_failure()
        if not self._ranks:
            return error
        ranks = tuple(self._ranks[rank] for rank in error.ranks if rank < len(self._ranks))
        reason = re.sub(r"\b(rank|root) (\d+)( of \d+)?\b", self._in_world, error.reason)
        told = CollectiveError(f"{reason} (in the process group {self._label}, which has the ranks {self._ranks})", error.code, ranks)
        told.tensor = error.tensor
        return told

    def _in_world(self, found: "re.Match[str]") -> str:
        number = int(found.group(2))
        return f"{found.group(1)} {self._ranks[number]}" if number < len(self._ranks) else found.group(0)

    def _together(self, works: List[Work], result: List[torch.Tensor], opts, into: Optional[List[torch.Tensor]] = None) -> Work:
        """One Work for all of them. `into`: where their results are to be copied to, one after the other, in the end."""

        def finish() -> None:
            for work in works:
                work.wait()
            for tensor, made in zip(into or (), result):
                if made is not tensor:
                    tensor.copy_(made)

        requests = [request for work in works for request in work._requests]
        return self._begun("coalesced", requests, result if into is None else into, finish, opts)

    def _each(self, begin: Callable[..., Work], outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts) -> Work:
        """begin(output, input, opts) of each pair, as one Work. The inputs count as they are now, and outputs that overlap are written one after the other."""
        inputs, into = list(inputs), list(outputs)
        meet, among = sharing([*into, *inputs]), sharing(into)
        inputs = [apart(tensor) if len(into) + i in meet else tensor for i, tensor in enumerate(inputs)]
        made = [torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device) if i in among else tensor for i, tensor in enumerate(into)]
        return self._together([begin(output, input, opts) for output, input in zip(made, inputs)], made, opts, into)
