"""Makes and ends the communicators of process groups.

The group of all ranks that `muster run` has started uses the communicator of `muster.world`, as muster.torch does; over several nodes a group of some of them is a process set
of it. Any other group has a communicator of its own. In an elastic run on one node the launcher tells its members of lost ranks, also while they make it. Elsewhere its members,
and no others, tell each other through torch.distributed's store where they are. So it is with a program that was not started by muster (torchrun, torch.multiprocessing).
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import secrets
import socket
import threading
from typing import Iterable, List, NamedTuple, Sequence, Tuple

import torch.distributed as dist
import _muster_native as native
from muster import membership, world
from muster.distributed import work
from muster.errors import CollectiveError

_KIND = "muster:"  # how handles of torch.distributed's _reconfigure begin
_lock = threading.Lock()
_open: List["Communicator"] = []
_ending: List[threading.Thread] = []
_at_exit = False
_world_failed = False


class Member(NamedTuple):
    """One of the ranks of a group that is to be made, in the order of their ranks."""

    rank: int  #: before
    token: str  #: of its process
    place: str
    host: str
    address: str  #: where it listens for ranks of other nodes


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


class Communicator:
    """The communicator of one process group. The group of all ranks shares that of muster.world.

    Attributes:
        comm: of the extension.
        nodes: number of its nodes.
        hosts: of each rank of the group its host; empty where it is not known.
        failed: whether a collective of the group has failed.
        set: number of the process set of `comm` that the group is; 0 is all of its ranks.
    """

    def __init__(self, comm: native.Comm, shared: bool, nodes: int, hosts: List[str], set: int = 0) -> None:
        self.comm = comm
        self.set = set
        self.nodes = nodes
        self.hosts = hosts
        self._shared = shared
        self.failed = False
        if not shared:
            with _lock:
                _open.append(self)

    def note_failure(self) -> None:
        """Notes a failure, which stays; the next process group of all ranks begins anew."""
        global _world_failed
        self.failed = True
        if self._shared:
            _world_failed = True

    def end(self) -> None:
        """Ends one that is not shared. Returns at once: the other members may come later, and end their groups in another order."""
        with _lock:
            if self._shared or self not in _open:
                return
            _open.remove(self)
            _ending[:] = [one for one in _ending if one.is_alive()]
            thread = threading.Thread(target=self._destroy, name="muster-destroy", daemon=True)
            _ending.append(thread)
            thread.start()

    def _destroy(self) -> None:
        try:
            self.comm.abandon() if self.failed else self.comm.destroy()
        except Exception:  # noqa: BLE001  it has failed before: whoever used it was told
            pass


def has_failed() -> bool:
    """Returns whether a collective of a group that is there has failed."""
    with _lock:
        return _world_failed or any(one.failed for one in _open)


def begin_anew() -> None:
    """The world has been made again: what failed before does not matter to it."""
    global _world_failed
    _world_failed = False


def is_joined(rank: int, size: int) -> bool:
    """Returns whether muster.world has been joined as this rank of this size."""
    return world.is_initialized() and (world.rank(), world.size()) == (rank, size)


def hears_of_losses() -> bool:
    """Returns whether the default group's ranks are all of an elastic run's, with their numbers."""
    now = native.generation() if is_joined(dist.get_rank(), dist.get_world_size()) else None
    return now is not None and now[1:3] == (world.rank(), world.size())


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else -1


def _is_world(rank: int, size: int) -> bool:
    """Returns whether a default group of this rank and size is what the variables of muster say."""
    if world.is_initialized():
        return is_joined(rank, size)
    if multiprocessing.parent_process() is not None:  # its variables are its parent's
        return False
    return (_number("MUSTER_RANK"), _number("MUSTER_WORLD_SIZE")) == (rank, size)


def place() -> str:
    """Returns which node this is; ranks with the same text can share memory."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
        return boot.read().strip() + " " + os.readlink("/proc/self/ns/net")


def _settings(timeout: float) -> List[str]:
    return [] if "MUSTER_COMM_DEADLINE" in os.environ else [f"MUSTER_COMM_DEADLINE={max(1, round(timeout * 1000))}ms"]


def _meet(store, rank: int, size: int) -> Tuple[List[str], int, List[str]]:
    """(this rank's variables, number of nodes, all ranks' hosts), by way of rank 0."""
    host = socket.gethostname()
    store.set(f"muster/{rank}", f"{place()}\n{host}")
    if rank == 0:
        theirs = [store.get(f"muster/{other}").decode() for other in range(size)]
        store.set("muster/all", "\n".join([secrets.token_hex(16), *theirs]))
    lines = store.get("muster/all").decode().split("\n")
    nspace, places, hosts = lines[0], lines[1::2], lines[2::2]
    addresses = _addresses(store, rank, size) if len(set(places)) > 1 else ""
    variables, nodes = _variables(rank, places, hosts, f"c10d.{nspace}", addresses)
    return variables, nodes, hosts


def _variables(rank: int, places: List[str], hosts: List[str], nspace: str, addresses: str) -> Tuple[List[str], int]:
    """(variables that say who this rank is among those, number of nodes)."""
    nodes = list(dict.fromkeys(places))
    mine = [other for other in range(len(places)) if places[other] == places[rank]]
    values = {
        "RANK": rank,
        "WORLD_SIZE": len(places),
        "LOCAL_RANK": mine.index(rank),
        "LOCAL_SIZE": len(mine),
        "NODE_RANK": nodes.index(places[rank]),
        "NODE_COUNT": len(nodes),
        "NSPACE": nspace,
        "HOST": hosts[rank],
    }
    if len(nodes) > 1:
        values["ADDRESSES"] = addresses
    return [f"MUSTER_{name}={value}" for name, value in values.items()], len(nodes)


def _addresses(store, rank: int, size: int) -> str:
    """Where each rank listens, by which the backend tcp joins nodes."""
    store.set(f"muster/{rank}/address", native.address())
    if rank == 0:
        store.set("muster/addresses", ";".join(store.get(f"muster/{other}/address").decode() for other in range(size)))
    return store.get("muster/addresses").decode()


def _register_exit() -> None:
    global _at_exit
    if not _at_exit:
        _at_exit = True
        atexit.register(_end_all)


def of_all(store, rank: int, size: int, timeout: float) -> Communicator:
    """Makes the communicator of a default group. Collective over its ranks."""
    global _world_failed
    if _is_world(rank, size):
        if _world_failed:
            membership.shutdown()
        membership.init(settings=_settings(timeout))
        _world_failed = False
        _register_exit()
        return Communicator(world.comm(), True, world.cross_size(), [])
    return of_members(store, rank, size, timeout)


def of_world(ranks: List[int], label: str) -> Communicator:
    """For a group of some ranks on several nodes, where the world is made already: a process set of it. Collective over those."""
    return Communicator(world.comm(), True, world.cross_size(), [], world.comm().make_process_set(ranks, f"c10d {label}"))


def of_generation(ranks: List[int], label: str, timeout: float) -> Communicator:
    """Makes the communicator of a group of some ranks of an elastic run's world on one node. Collective over those."""
    made = native.create(_settings(timeout), ranks, f"c10d {label}")
    _register_exit()
    return Communicator(made, False, 1, [socket.gethostname()] * len(ranks))


def of_members(store, rank: int, size: int, timeout: float) -> Communicator:
    """Makes the communicator of a group of some ranks. Collective over those."""
    variables, nodes, hosts = _meet(store, rank, size)
    return Communicator(_made(variables, timeout), False, nodes, hosts)


def of_handles(rank: int, members: Sequence[Member], name: str, meeting: float, timeout: float) -> Communicator:
    """For a group whose members know each other by their handles (`handles`), within `meeting` seconds. Collective over those."""
    hosts = [member.host for member in members]
    variables, nodes = _variables(rank, [member.place for member in members], hosts, f"c10d.{name}", ";".join(member.address for member in members))
    if meeting < timeout:  # the communicator's deadline is that of its collectives: another finds out whether all are there
        _made([*variables, f"MUSTER_NSPACE=c10d.{name}.meeting", f"MUSTER_COMM_DEADLINE={max(1, round(meeting * 1000))}ms"], meeting).destroy()
    return Communicator(_made(variables, timeout), False, nodes, hosts)


def _made(variables: List[str], timeout: float) -> native.Comm:
    if world.is_initialized():  # whose files have the same names
        variables = [*variables, "MUSTER_TIMELINE=", "MUSTER_FLIGHT_RECORDER="]
    made = native.create([*_settings(timeout), *variables])
    _register_exit()
    return made


def _end_all() -> None:
    """Ends all groups at the interpreter's end. A rank that ends by an exception waits for nobody; else groups are ended in the order in which they were made."""
    import sys

    with _lock:
        left, threads = list(_open), list(_ending)
        _open.clear()
    failed = getattr(sys, "last_value", None) is not None
    for one in left:
        one.failed = one.failed or failed
        one._destroy()
    for thread in threads:
        thread.join(1)
    membership.end_at_exit()  # before the thread that waits: its requests end by that
    work._waiter.stop(5)


def _after_fork() -> None:
    _open.clear()
    _ending.clear()


os.register_at_fork(after_in_child=_after_fork)
