"""Tells which rank this process is: from muster, torch.distributed, or the environment of the launcher."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, Optional, Tuple

from .errors import UsageError


class Place(NamedTuple):
    rank: int
    size: int
    local_rank: int
    local_size: int


def _number(name: str) -> Optional[int]:
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r}, which is no number; unset it, or give rank= and size=") from None


def _from_variables(*names: str) -> Optional[Place]:
    rank, size, local_rank, local_size = (_number(name) for name in names)
    if rank is None or size is None:
        return None
    return Place(rank, size, local_rank or 0, local_size or 1)


def _from_torch() -> Optional[Tuple[int, int]]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def this_place() -> Place:
    """The first that knows: muster.init(), init_process_group(), MUSTER_RANK and MUSTER_WORLD_SIZE, RANK and WORLD_SIZE; else rank 0 of 1."""
    world = sys.modules.get("muster.world")
    if world is not None and world.is_initialized():
        return Place(world.rank(), world.size(), world.local_rank(), world.local_size())
    named = _from_variables("MUSTER_RANK", "MUSTER_WORLD_SIZE", "MUSTER_LOCAL_RANK", "MUSTER_LOCAL_SIZE") or _from_variables(
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"
    )
    of_torch = _from_torch()
    if of_torch is not None:
        if named is not None and (named.rank, named.size) == of_torch:
            return named
        return Place(*of_torch, 0, 1)
    return named or Place(0, 1, 0, 1)
