"""Makes and ends this process's membership in the world: `init`, `shutdown`. Both are collective."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import List, Sequence

import _muster_native as native
from muster import process_sets as sets
from muster import timeline, world
from muster.mpi_ranks import is_world, ranks_of

_lock = threading.Lock()
_at_exit = False

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
    global _at_exit
    with _lock:
        if world.is_initialized():
            return
        ranks = _ranks_of(comm)
        world.enter(native.create([*_variables(), *settings], *((ranks, "muster.world") if ranks else ())))
        if not _at_exit:
            _at_exit = True
            atexit.register(end_at_exit)
    try:
        world.compare_nodes()
        sets.begin(process_sets)
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
    ranks = ranks_of(comm)
    if not ranks:
        raise ValueError("init(comm=MPI.COMM_NULL): this rank is in no communicator; call init() on the ranks of one only")
    return [] if is_world(comm) else ranks


def shutdown() -> None:
    """Ends this process's membership. Collective, but does not hang when ranks have failed. Does nothing if there is none."""
    with _lock:
        ended = world.leave()
        sets.end()
    if ended is not None:
        ended.destroy()


def end_at_exit() -> None:
    """At the interpreter's end. A rank that ends by an exception does not wait for the others: they are told."""
    if getattr(sys, "last_value", None) is None:
        shutdown()
        return
    ended = world.leave()
    if ended is not None:
        ended.abandon()
