"""Writes and reads the handles of torch.distributed's `_reconfigure`: what a member of a group says of itself before the group is made."""

from __future__ import annotations

import json
import socket
from typing import Iterable, List

import _muster_native as native
from muster.distributed.communicators import Member, place

_KIND = "muster:"


def handle_of(rank: int, token: str) -> str:
    """This process's handle, whose group has that token."""
    return _KIND + json.dumps([rank, token, place(), socket.gethostname(), native.address()])


def _read(handle: str) -> Member:
    try:
        if handle.startswith(_KIND):
            return Member(*json.loads(handle[len(_KIND) :]))
    except (TypeError, ValueError):
        pass
    raise RuntimeError(f"_reconfigure: {handle!r} is no handle of a process group of muster; give what _get_reconfigure_handle() returns on each member")


def members_of(handles: Iterable[str]) -> List[Member]:
    """The members, by their new ranks: in the order of a list; of a set in the order of the ranks they have now."""
    members = [_read(handle) for handle in handles]
    if not isinstance(handles, list):
        members.sort()
    if len({member.token for member in members}) < len(members):
        raise RuntimeError(f"_reconfigure: of the {len(members)} handles two are of the same process; give one a member")
    return members
