"""Makes and ends this process's membership in the world: all ranks of the job.

One communicator a process. `init` and `shutdown` are collective; everything else here is not, and any thread may call it.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
from typing import List, Optional, Sequence, Tuple

import _muster_native as native
import muster.errors  # noqa: F401  sets the class of exceptions

_lock = threading.Lock()
_comm: Optional[native.Comm] = None
_place: Tuple[int, int, int, int, int, int] = (0, 1, 0, 1, 0, 1)
_homogeneous = True
_nameless: dict = {}
_at_exit = False
generation = 0  #: Grows with each init(): what was prepared in an earlier one must be prepared again.

# Horovod's variables with the muster's that mean the same, and how a value is rewritten.
_HOROVOD_VARIABLES = (
    ("HOROVOD_FUSION_THRESHOLD", "MUSTER_FUSION_BYTES", lambda value: value),
    ("HOROVOD_CYCLE_TIME", "MUSTER_CYCLE_TIME", lambda value: value + "ms"),
    ("HOROVOD_CACHE_CAPACITY", "MUSTER_CACHE_CAPACITY", lambda value: value),
    ("HOROVOD_STALL_CHECK_TIME_SECONDS", "MUSTER_STALL_WARNING", lambda value: value + "s"),
    ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "MUSTER_COMM_DEADLINE", lambda value: "" if value == "0" else value + "s"),
    ("HOROVOD_STALL_CHECK_DISABLE", "MUSTER_STALL_WARNING", lambda value: "" if value in ("", "0") else "0"),
)


def _variables() -> List[str]:
    """Settings for the communicator out of Horovod's variables, where muster's own are not set."""
    taken = {}
    for theirs, ours, rewrite in _HOROVOD_VARIABLES:
        value = os.environ.get(theirs, "")
        if value and ours not in os.environ and rewrite(value):
            taken[ours] = rewrite(value)
    return [f"{name}={value}" for name, value in taken.items()]


def init(comm=None, process_sets=None, settings: Sequence[str] = ()) -> None:
    """Makes this process a rank. Collective over all ranks of the job; does nothing if it is one already.

    Who it is comes from the environment that `muster run` (or PMIx, PMI, Slurm) sets; alone it is rank 0 of 1. After `shutdown` it may be called again.

    Args:
        comm: None for all ranks. Else some of them, which alone call this and become ranks 0, 1 … in this order: a list of ranks, or a communicator of mpi4py.
        process_sets: ProcessSet objects to add at once, or "dynamic" to allow `add_process_set` later (as HOROVOD_DYNAMIC_PROCESS_SETS=1 does).
        settings: texts NAME=VALUE that go before variables of the environment: ["MUSTER_COMM_DEADLINE=60s"].

    Raises:
        ValueError: wrong arguments, or this is a child of fork() of a rank.
        CollectiveError: ranks are missing, or differ in their settings.
    """
    global _comm, _place, _homogeneous, _at_exit, generation
    from muster import process_sets as sets
    from muster import timeline

    with _lock:
        if _comm is not None:
            return
        ranks = _ranks_of(comm)
        made = native.create([*_variables(), *settings], *((ranks, "muster.world") if ranks else ()))
        _place = made.place()
        _comm = made
        generation += 1
        _nameless.clear()
        if not _at_exit:
            _at_exit = True
            atexit.register(_end)
    try:
        _homogeneous = _is_same_everywhere(local_size())
        sets._begin(process_sets)
        timeline.begin_asked()
    except BaseException:
        shutdown()
        raise


def _ranks_of(comm) -> List[int]:
    """The ranks of the job that `init(comm=…)` means; none for all of them."""
    if comm is None:
        return []
    if not hasattr(comm, "Get_group"):
        return [int(rank) for rank in comm]
    from muster.mpi_ranks import is_world, ranks_of

    ranks = ranks_of(comm)
    if not ranks:
        raise ValueError("init(comm=MPI.COMM_NULL): this rank is in no communicator; call init() on the ranks of one only")
    return [] if is_world(comm) else ranks


def shutdown() -> None:
    """Ends this process's membership. Collective, but does not hang when ranks have failed. Does nothing if there is none."""
    global _comm
    from muster import process_sets as sets

    with _lock:
        ended, _comm = _comm, None
        sets._end()
    if ended is not None:
        ended.destroy()


def _end() -> None:
    """At the interpreter's end. A rank that ends by an exception does not wait for the others: they are told."""
    global _comm
    if _comm is not None and getattr(sys, "last_value", None) is not None:
        ended, _comm = _comm, None
        ended.abandon()
    else:
        shutdown()


def is_initialized() -> bool:
    """Whether `init` was called, and `shutdown` not since."""
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
    """Whether every node has the same number of ranks."""
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


def gather_numbers(numbers: Sequence[int], name: str) -> List[Tuple[int, ...]]:
    """Every rank's numbers (as many on each, 64 bits), in the order of the ranks. Collective, blocking."""
    import ctypes

    array = (ctypes.c_int64 * len(numbers))(*numbers)
    handle = comm().submit(
        native.ALLGATHER, 0, None, name, ctypes.addressof(array), 0, (1, len(numbers)), native.I64, 1.0, 1.0, 0, 0, 0, native.HOST, 0, array
    )
    handle.wait()
    address, size_in_bytes = handle.result()
    all_of_them = (ctypes.c_int64 * (size_in_bytes // 8)).from_address(address)
    return [tuple(all_of_them[i : i + len(numbers)]) for i in range(0, len(all_of_them), max(1, len(numbers)))]


def _is_same_everywhere(number: int) -> bool:
    return len(set(gather_numbers((number,), "muster.homogeneous"))) == 1
