"""Compares what the ranks of a process group call before they begin it, as torch does over gloo with TORCH_DISTRIBUTED_DEBUG=DETAIL: kind, shapes, types, devices."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

import torch
import torch.distributed as dist
import _muster_native as native
from muster.distributed.work import Work
from muster.errors import CollectiveError

_DIGEST = 32
_BYTES = 1024  # of one fingerprint; what is longer is told in part, and compared whole
_LONGEST = (20, 40, 600, 160, 100)  # letters of its parts
_ASPECTS = ("Sequence number", "Op type", "Tensor shapes", "Tensor dtypes", "Tensor devices")


class _Fingerprint(NamedTuple):
    """Holds what a rank calls, in the letters of its parts."""

    number: str
    operation: str
    shapes: str
    types: str
    devices: str

    def __str__(self) -> str:
        names = ("SequenceNumber", "OpType", "TensorShape", "TensorDtypes", "TensorDeviceTypes")
        return f"CollectiveFingerPrint({', '.join(f'{name}={part}' for name, part in zip(names, self) if part)})"


def _type_of(tensor: torch.Tensor) -> str:
    """torch's name of its type in C++, as in its own messages: Float of torch.float32."""
    return tensor.type().rpartition(".")[2][: -len("Tensor")]


def _fingerprint(number: int, operation: str, tensors: Sequence[torch.Tensor]) -> _Fingerprint:
    def told(one: Callable[[torch.Tensor], str]) -> str:
        return ", ".join(map(one, tensors))

    return _Fingerprint(str(number), operation, told(lambda t: str(list(t.shape))), told(_type_of), told(lambda t: t.device.type))


def _packed(mine: _Fingerprint) -> torch.Tensor:
    whole = "\n".join(mine).encode()
    parts = [part if len(part) <= longest else part[: longest - 3] + "..." for part, longest in zip(mine, _LONGEST)]
    data = hashlib.sha256(whole).digest() + "\n".join(parts).encode()
    return torch.frombuffer(bytearray(data.ljust(_BYTES, b"\0")), dtype=torch.uint8)


def _read(packed: torch.Tensor) -> _Fingerprint:
    return _Fingerprint(*bytes(packed[_DIGEST:].tolist()).rstrip(b"\0").decode().split("\n"))


class Comparison:
    """Compares the calls of one process group."""

    def __init__(self) -> None:
        self._number = 0
        self._is_within = False

    @contextlib.contextmanager
    def one_call(self, group, operation: str, alike: Optional[Callable[..., Sequence[torch.Tensor]]], given: Sequence[Any]) -> Iterator[None]:
        """Within it a call begins, and others by which it is carried out. Blocks until all ranks are at a call.

        Raises:
            CollectiveError: they call different things, on all of them; or some call nothing in time.
        """
        if self._is_within:
            yield
            return
        self._is_within = True
        try:
            self._compare(group, _fingerprint(self._number, operation, () if alike is None else alike(*given)))
            yield
        finally:
            self._is_within = False

    def _compare(self, group, mine: _Fingerprint) -> None:
        self._number += 1
        packed = _packed(mine)
        gathered = torch.empty((group.size(), _BYTES), dtype=torch.uint8)
        Work(group, "comparison of calls", (group._submit(native.ALLGATHER, "detail", 0, packed, gathered),), [], None, None).wait()
        differ = [rank for rank in range(group.size()) if not torch.equal(gathered[rank, :_DIGEST], gathered[0, :_DIGEST])]
        if differ:
            raise _mismatch(group, _read(gathered[0]), _read(gathered[differ[0]]), differ)


def _mismatch(group, first: _Fingerprint, other: _Fingerprint, differ: List[int]) -> CollectiveError:
    ranks = [group._ranks[rank] if group._ranks else rank for rank in (0, *differ)]
    aspects = [f"{aspect}: {a} vs {b}" for aspect, a, b in zip(_ASPECTS, first, other) if a != b]
    more = f" (so do {len(differ) - 1} more ranks: {', '.join(map(str, ranks[2:18]))}{', ...' if len(ranks) > 18 else ''})" if len(differ) > 1 else ""
    return CollectiveError(
        f"Detected mismatch between collectives on ranks. Rank {ranks[0]} is running collective: {first}, but Rank {ranks[1]} is running collective: {other}{more}. "
        f"Collectives differ in the following aspects: {'; '.join(aspects) or 'what is left out here'}",
        native.E_PEER,
        tuple(ranks[1:]),
    )


def comparison() -> Optional[Comparison]:
    """Returns what compares the calls of a group that is being made, where TORCH_DISTRIBUTED_DEBUG=DETAIL asks for that."""
    return Comparison() if dist.get_debug_level() == dist.DebugLevel.DETAIL else None
