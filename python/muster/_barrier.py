"""Waits for the other ranks: `barrier`, and `join` of a rank that has no more data."""

from __future__ import annotations

import _muster_native as native
from muster import world
from muster.process_sets import ProcessSet, global_process_set, number_of


def _submit(kind: int, process_set: int) -> native.Handle:
    request = world.comm().submit(kind, 0, None, set=process_set)
    request.wait()
    return request


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the set have called it. Raises CollectiveError when ranks have died or hang."""
    _submit(native.BARRIER, number_of(process_set))


def join(device: int = -1) -> int:
    """Tells that this rank has no more data; returns when all ranks have said so, with the number of the last.

    Until then this rank takes part in the others' collectives with zeros (an average is still over all ranks) and with no rows.

    Args:
        device: taken for the sake of scripts that give it; without effect.
    """
    return _submit(native.JOIN, 0).number()
