"""Compares what the ranks of a process set are about to do, and says on all of them how they differ."""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any, List

import _muster_native as native
from muster import world
from muster.errors import CollectiveError


def gather_bytes(data: bytes, name: str, process_set: int) -> List[bytes]:
    """Every rank's bytes, in the order of the ranks. Collective over the set, blocking."""
    array = (ctypes.c_uint8 * max(1, len(data))).from_buffer_copy(data or b"\0")
    handle = world.comm().submit(native.ALLGATHER, 0, (name, ctypes.addressof(array), 0, (len(data),), native.U8), set=process_set, keep=array)
    handle.wait()
    address, size = handle.result()
    together = ctypes.string_at(address, size) if size else b""
    parts, at = [], 0
    for length in handle.rows():
        parts.append(together[at : at + length])
        at += length
    return parts


def gather_values(value: Any, name: str, process_set: int) -> List[Any]:
    """Every rank's value (of what JSON knows), in the order of the ranks. Collective over the set, blocking."""
    return [json.loads(part) for part in gather_bytes(json.dumps(value).encode(), name, process_set)]


def first_difference(mine: List[str], theirs: List[str]) -> str:
    """In what a list of lines differs from the reference, as a part of a sentence; "" if in nothing. Pure."""
    for number, (own, other) in enumerate(zip(mine, theirs)):
        if own != other:
            return f"line {number} is {own}, and {other}"
    if len(mine) == len(theirs):
        return ""
    more = mine if len(mine) > len(theirs) else theirs
    at = min(len(mine), len(theirs))
    return f"there are {len(mine)} lines, and {len(theirs)}; the first {'too many' if more is mine else 'missing'} is {more[at]}"


def require_same(what: str, lines: List[str], name: str, process_set: int, ranks: List[int]) -> None:
    """Raises CollectiveError, on all ranks, if the lines are not the same on all. Collective over the set, blocking.

    Args:
        what: "the parameters of DistributedOptimizer", for the message.
        ranks: the set's, in the world.
    """
    import hashlib

    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    if len(set(gather_values(digest, f"{name} (agreement)", process_set))) == 1:
        return
    everybody = gather_values([os.uname().nodename, lines], f"{name} (difference)", process_set)
    faults, culprits = [], []
    for rank, (host, theirs) in zip(ranks, everybody):
        difference = first_difference(theirs, everybody[0][1])
        if difference:
            culprits.append(rank)
            faults.append(f"on rank {rank} on {host} {difference} on rank {ranks[0]} on {everybody[0][0]}")
    raise CollectiveError(
        f"{what} differ: {'; '.join(faults[:4])}. Build the same model, with the same options, on every rank", native.E_PEER, tuple(culprits)
    )
