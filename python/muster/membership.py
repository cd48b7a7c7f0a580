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
from muster.errors import CollectiveError
from muster.mpi_ranks import is_world, ranks_of

_lock = threading.Lock()
_at_exit = False
_joined = False
_settings: List[str] = []  # of the world, as texts NAME=VALUE

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
        SystemExit: this process has waited for the place of a lost rank (`--warm-spares`), and the run ends.
    """
    global _at_exit, _joined, _settings
    with _lock:
        if world.is_initialized():
            return
        ranks = _ranks_of(comm)
        _settings = [*_variables(), *settings]
        started_in = os.environ.get("MUSTER_GENERATION", "")
        try:
            made = native.create(_settings, *((ranks, "muster.world") if ranks else ()))
        except Exception:
            now = native.generation()
            if now is not None and now[1] < 0:
                raise SystemExit(0) from None
            raise
        world.enter(made)
        _take_place()
        if not _at_exit:
            _at_exit = True
            atexit.register(end_at_exit)
    try:
        world.compare_nodes()
        # A rank that joins a world which has begun meets nobody there that makes process sets.
        _joined = os.environ.get("MUSTER_GENERATION", "") != started_in
        sets.begin(None if _joined and process_sets != "dynamic" else process_sets)
        timeline.begin_asked()
    except BaseException:
        shutdown()
        raise


def joined() -> bool:
    """Returns whether this rank has joined a world that had begun, in place of a lost one, as far as `init` was called."""
    return _joined


def _take_place() -> List[int]:
    """Sets in os.environ what says who this rank is in an elastic run, RANK and its like. Returns the numbers of its members, by rank."""
    now = native.generation()
    if now is None:
        return []
    place = dict(line.split("=", 1) for line in now[4].splitlines())
    place.pop("HOROVOD_HOSTNAME", None)  # the name that the list of hosts has for it is in the environment from the start
    os.environ.update(place)
    return [int(number) for number in place["MUSTER_MEMBERS"].split(",")]


def reform(has_state: bool, at_commit: bool, deadline: float = 0.0) -> bool:
    """Leaves the world, and makes that of the next generation: without ranks that are lost, those that are left in their order. Collective over these.

    Process sets whose members are all there are made again, with the ranks' new numbers, unless a new rank joins. RANK, WORLD_SIZE, HOROVOD_RANK and their like are set in os.environ.

    Args:
        has_state: whether this rank can give the others what a newcomer lacks; the first that can becomes rank 0.
        at_commit: whether no collective has failed, so that all ranks have the same state.
        deadline: in seconds; 0 is 10 minutes.

    Returns:
        Whether rank 0's state is to be given to all: the same on all ranks.

    Raises:
        CollectiveError: the launcher ends the run, it is no elastic run, or ranks do not come in time.
        SystemExit: this rank has no part in the next generation.
    """
    members = _take_place()
    former, left = set(members), world.leave()
    again = [(one, [members[rank] for rank in one.ranks]) for one in sets.end()]
    while True:
        made = native.reform(left, _settings, native.HAS_STATE * has_state + native.AT_COMMIT * at_commit, deadline)
        if made is None:
            raise SystemExit(0)
        members = _take_place()
        try:
            with _lock:
                world.enter(made)
            world.compare_nodes()
            if set(members) <= former:  # a newcomer knows nothing of these sets
                sets.begin_again(again, members)
            return bool(native.generation()[3])
        except CollectiveError:  # others were lost meanwhile
            left, at_commit = world.leave(), False
            sets.end()


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
    """Ends this process's membership. Collective, but does not hang when ranks have failed. Does nothing without one."""
    with _lock:
        ended = world.leave()
        sets.end()
    if ended is not None:
        ended.destroy()


def end_at_exit() -> None:
    """Ends muster at the interpreter's end. A rank that ends by an exception does not wait for the others: it reports that to them."""
    if getattr(sys, "last_value", None) is None:
        shutdown()
        return
    ended = world.leave()
    if ended is not None:
        ended.abandon()
