"""Makes process sets: some of the ranks, which run their own collectives."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import _muster_native as native
from muster import world
from muster.errors import CollectiveError
from muster.mpi_ranks import ranks_of


class ProcessSet:
    """Some ranks of the world. Usable after it was given to `init` or `add_process_set`; ranks outside must not submit to it (see `included`).

    It is made of a list of ranks, or of a communicator of mpi4py, and then goes to `init(process_sets=…)`: each rank gets the set of its own communicator
    where they differ (those of a `Split`).
    """

    def __init__(self, ranks: Any) -> None:
        self.mpi_comm = ranks if hasattr(ranks, "Get_group") else None
        self._ranks: Optional[List[int]] = sorted(int(rank) for rank in (ranks_of(ranks) if self.mpi_comm is not None else ranks))
        if len(set(self._ranks)) != len(self._ranks):
            raise ValueError(f"a process set names a rank twice: {self._ranks}; name each once")
        self.process_set_id: Optional[int] = None

    @property
    def ranks(self) -> List[int]:
        """Lists its ranks in the world, ascending."""
        return list(range(world.size())) if self._ranks is None else list(self._ranks)

    def _place(self):
        if self.process_set_id is None:
            raise ValueError(f"the process set {self._ranks} is not in use; give it to init() or add_process_set()")
        return world.comm().place_in_set(self.process_set_id)

    def rank(self) -> int:
        """This rank's number within the set; -1 outside of it."""
        return self._place()[0]

    def size(self) -> int:
        """Number of its ranks."""
        return self._place()[1]

    def included(self) -> bool:
        """Returns whether this rank belongs to it."""
        return self._place()[0] >= 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessSet) and self._ranks == other._ranks

    def __hash__(self) -> int:
        return hash(None if self._ranks is None else tuple(self._ranks))

    def __repr__(self) -> str:
        ranks = "all" if self._ranks is None else self._ranks
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={ranks})"


global_process_set = ProcessSet([])
global_process_set._ranks = None  # all
global_process_set.process_set_id = 0

_in_use: Dict[int, ProcessSet] = {}
_dynamic = False


def begin(given) -> None:
    """Adds the sets that `init` was given. Collective over the world, blocking."""
    global _dynamic
    _dynamic = given == "dynamic" or os.environ.get("HOROVOD_DYNAMIC_PROCESS_SETS", "") not in ("", "0")
    if given is None or given == "dynamic":
        return
    for one in given:
        one = one if isinstance(one, ProcessSet) else ProcessSet(one)
        _add(one) if one.mpi_comm is None else _add_of_comm(one)


def _add_of_comm(mine: ProcessSet) -> None:
    """Adds the sets of all ranks' communicators, in the order of their first ranks. Collective over the world, blocking."""
    own = mine.ranks
    padded = own + [-1] * (world.size() - len(own))
    lists = {tuple(rank for rank in theirs if rank >= 0) for theirs in world.gather_numbers(padded, "muster.process_set_of_comm")}
    lists.discard(())  # of ranks whose communicator is MPI.COMM_NULL
    if not own and len(lists) == 1:
        mine._ranks = own = list(next(iter(lists)))
    for ranks in sorted(lists):
        _add(mine if list(ranks) == own else ProcessSet(ranks))


def end() -> List[ProcessSet]:
    """Takes all sets out of use, since the world has ended. Returns them, in the order in which they were made."""
    ended = [_in_use[number] for number in sorted(_in_use)]
    for one in ended:
        one.process_set_id = None
    _in_use.clear()
    return ended


def begin_again(sets: Sequence[Tuple[ProcessSet, Sequence[int]]], members: Sequence[int]) -> None:
    """Makes sets of a former world again, given with the numbers of their members, if all of these are in this one: `members`, by rank. Collective, blocking."""
    for one, numbers in sets:
        if not set(numbers) <= set(members):
            continue
        one._ranks = sorted(members.index(number) for number in numbers)
        if len(numbers) == len(members):  # all that are left
            one.process_set_id = 0
            _in_use[0] = one
        else:
            _add(one)


def _add(process_set: ProcessSet) -> ProcessSet:
    ranks = process_set.ranks
    if ranks == list(range(world.size())):
        raise ValueError(f"a process set of the ranks {ranks} is in use already: those are all of them; use global_process_set")
    if process_set.process_set_id is not None or any(one.ranks == ranks for one in _in_use.values()):
        raise ValueError(f"a process set of the ranks {ranks} is in use already; use that one")
    process_set.process_set_id = world.comm().add_process_set(ranks)
    _in_use[process_set.process_set_id] = process_set
    return process_set


def _check_dynamic(what: str) -> None:
    world.comm()
    if not _dynamic:
        raise ValueError(f'{what} after init() needs init(process_sets="dynamic") or HOROVOD_DYNAMIC_PROCESS_SETS=1')


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Makes a process set. Collective over all ranks of the world, with the same ranks; blocks until they have called it.

    Raises ValueError where sets are not dynamic, for wrong ranks, and for a set that is there already.
    """
    _check_dynamic("adding a process set")
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.mpi_comm is not None:
        _add_of_comm(process_set)
        return process_set
    return _add(process_set)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a process set; whether it was in use. Collective over all ranks of the world, blocking. The set of all ranks cannot be removed (False).

    Requests of it that are in flight on this rank are a ValueError.
    """
    _check_dynamic("removing a process set")
    number = process_set.process_set_id
    if number is None or number == 0 or number not in _in_use:
        return False
    world.comm().remove_process_set(number)
    del _in_use[number]
    process_set.process_set_id = None
    return True


def root_within(process_set: ProcessSet, root_rank: int) -> int:
    """The place within the set of a rank of the world. CollectiveError for one that is not in it."""
    ranks = process_set.ranks
    if root_rank in ranks:
        return ranks.index(root_rank)
    raise CollectiveError(f"the root rank {root_rank} is not in the process set of the ranks {ranks}; give the rank's number in the world", native.E_USAGE, ())


def number_of(process_set: ProcessSet) -> int:
    """Returns its number, for a submission. Raises ValueError if it is not in use."""
    if process_set.process_set_id is None:
        raise ValueError(f"{process_set} is not in use; give it to init() or add_process_set()")
    return process_set.process_set_id
