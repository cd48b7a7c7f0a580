"""Holds this process's place in the world, all ranks of the job: who it is, and the communicator of all. `membership` makes and ends it.

One communicator a process. Any thread may call what is here; only `gather_numbers` is collective.
"""

from __future__ import annotations

import itertools
from typing import List, Optional, Sequence, Tuple

import _muster_native as native
import muster.errors  # noqa: F401  sets the class of exceptions

_comm: Optional[native.Comm] = None
_place: Tuple[int, int, int, int, int, int] = (0, 1, 0, 1, 0, 1)
_homogeneous = True
_nameless: dict = {}
generation = 0  #: Grows with each init(): what was prepared in an earlier one must be prepared again.


def enter(made: native.Comm) -> None:
    """Makes `made` the communicator of all ranks."""
    global _comm, _place, generation
    _place = made.place()
    _comm = made
    generation += 1
    _nameless.clear()


def leave() -> Optional[native.Comm]:
    """Takes the communicator out, for the caller to end, or gives None."""
    global _comm
    left, _comm = _comm, None
    return left


def compare_nodes() -> None:
    """Finds out whether every node has the same number of ranks. Collective, blocking."""
    global _homogeneous
    _homogeneous = len(set(gather_numbers((local_size(),), "muster.homogeneous"))) == 1


def is_initialized() -> bool:
    """Returns whether `init` was called, and `shutdown` not since."""
    return _comm is not None


def comm() -> native.Comm:
    """The communicator of all ranks. Raises ValueError before `init`."""
    if _comm is None:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return _comm


def rank() -> int:
    """Number of this rank, from 0. Raises ValueError before `init`, as the following do."""
    comm()
    return _place[0]


def size() -> int:
    """Number of ranks."""
    comm()
    return _place[1]


def local_rank() -> int:
    """Number of this rank on its node, from 0."""
    comm()
    return _place[2]


def local_size() -> int:
    """Number of ranks on this node."""
    comm()
    return _place[3]


def cross_rank() -> int:
    """Number of this rank's node, from 0."""
    comm()
    return _place[4]


def cross_size() -> int:
    """Number of nodes."""
    comm()
    return _place[5]


def is_homogeneous() -> bool:
    """Returns whether every node has the same number of ranks."""
    comm()
    return _homogeneous


def backend() -> Tuple[str, str]:
    """Name of the backend for host memory ("shm", "mpi" …), and why it was chosen, in words."""
    return comm().backend()


def nameless(kind: str, set: int = 0) -> str:
    """A name for a tensor that was given none: "KIND.noname.N". The same on all ranks of the process set that call it equally often."""
    return f"{kind}.{nameless_part(kind, set)}"


def nameless_part(kind: str, set: int) -> str:
    """The same without "KIND."."""
    numbers = _nameless.get((kind, set))
    if numbers is None:
        numbers = _nameless.setdefault((kind, set), itertools.count(1))
    return f"noname.{next(numbers)}"


def named(kind: str, name: Optional[str], set: int) -> str:
    """The name of a request of this kind: "KIND.NAME", or that of a nameless one."""
    return nameless(kind, set) if name is None else kind + "." + name


def forget_nameless(set: int) -> None:
    """Counts anew, on all ranks of the process set, what has no name there."""
    for key in [key for key in _nameless if key[1] == set]:
        del _nameless[key]


def gather_numbers(numbers: Sequence[int], name: str) -> List[Tuple[int, ...]]:
    """Every rank's numbers (64 bits; the same number of them on each), in the order of the ranks. Collective, blocking."""
    import ctypes

    array = (ctypes.c_int64 * len(numbers))(*numbers)
    handle = comm().submit(native.ALLGATHER, 0, (name, ctypes.addressof(array), 0, (1, len(numbers)), native.I64), keep=array)
    handle.wait()
    address, size_in_bytes = handle.result()
    all_of_them = (ctypes.c_int64 * (size_in_bytes // 8)).from_address(address)
    return [tuple(all_of_them[i : i + len(numbers)]) for i in range(0, len(all_of_them), max(1, len(numbers)))]
