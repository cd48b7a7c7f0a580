"""Runs torch.distributed's collectives over muster: the process group that `init_process_group("muster")` makes."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any, List, Set

import torch
import torch.distributed as dist
import _muster_native as native
from muster import world
from muster._torch_types import has_plain_memory
from muster.distributed import communicators
from muster.distributed.fingerprints import comparison
from muster.distributed.group import DESTROYED, UNCONFIGURED, Left, one
from muster.distributed.overloads import collective
from muster.distributed.reducing import ReducingGroup
from muster.distributed.reforming import retire_models
from muster.distributed.work import Ended, Work
from muster.errors import CollectiveError


class MusterProcessGroup(ReducingGroup):
    """A process group. torch.distributed calls it; its methods are those of torch's ProcessGroup.

    Every member calls the same collectives in the same order. The calls are matched by kind, type, size and their number among such.
    """

    is_of_muster = True

    def __init__(self, store, rank: int, size: int, timeout: float, label: str, ranks: List[int], reconfigures: bool = False) -> None:
        super().__init__(store, rank, size, timeout, label, ranks)
        self._members_store: Any = store
        self._reconfigures = reconfigures
        self._token = secrets.token_hex(8)
        self._tokens: List[str] = []
        self._uuids: Set[int] = set()

    # ------------------------------------------------------------------------------------------------ barriers

    def _submit_barrier(self):
        nothing = torch.zeros(1, dtype=torch.uint8)
        return self._submit(native.ALLREDUCE, "barrier", native.MAX, nothing, nothing)

    @collective("BARRIER", "", "BarrierOptions")
    def barrier(self, opts=None) -> Work:
        return self._begun("barrier", (self._submit_barrier(),), [], None, opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks are here. After `timeout` the CollectiveError of rank 0 names, in torch's words, the first rank that is not, or with
        `wait_all_ranks` all of them; its `ranks` are all of them in any case."""
        if isinstance(timeout, (int, float)):
            timeout = timedelta(seconds=timeout)
        milliseconds = round((self._timeout if timeout is None else timeout.total_seconds()) * 1000)
        me = self._ranks[self._rank] if self._ranks else self._rank
        if milliseconds <= 0:
            raise CollectiveError(f"Rank {me} timed out in monitoredBarrier after {milliseconds} ms.", native.E_TIMEOUT)
        try:
            Work(self, "barrier", (self._submit_barrier(),), [], None, None).wait(timeout)
        except CollectiveError as error:
            raise CollectiveError(f"{self._of_barrier(me, error.ranks, wait_all_ranks, milliseconds)}: {error.reason}", error.code, error.ranks) from None

    def _of_barrier(self, me: int, missing, wait_all_ranks: bool, milliseconds: int) -> str:
        first = self._ranks[0] if self._ranks else 0
        if self._rank != 0:
            return f"Rank {me} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank {first}"
        if wait_all_ranks:
            return f"Ranks {', '.join(map(str, missing))} failed to pass monitoredBarrier in {milliseconds} ms"
        return f"Rank {missing[0] if missing else '?'} failed to pass monitoredBarrier in {milliseconds} ms"

    # ------------------------------------------------------------------------------------------------ groups of some of its ranks

    supports_splitting = True

    def eager_connect_single_device(self, device=None) -> None:
        """Does nothing: the ranks have met already."""

    def comm_split_count(self) -> int:
        return self._splits

    def split_group(self, ranks, timeout=None, opts=None, group_name=None, group_desc=None, device_types=None):
        """The group of these ranks of this one, in their order; None on the others. Collective over those."""
        self._splits += 1
        if self._rank not in ranks:
            return None
        world_ranks = [self._ranks[rank] if self._ranks else rank for rank in ranks]
        name = group_name or f"{self._group_name}:split:{self._splits}:{','.join(map(str, ranks))}"
        seconds = self._timeout if timeout is None else timeout.total_seconds()
        made = _make(dist.PrefixStore(f"{name}/", self._members_store), list(ranks).index(self._rank), len(ranks), seconds, world_ranks, name)
        made._is_split = True
        made.setGroupName(name)
        made.setGroupDesc(group_desc or "undefined")
        return made

    def get_group_store(self):
        return self._members_store

    # ------------------------------------------------------------------------------------------------ other members

    # torch 2.14 and later: torch.distributed's _supports_reconfigure, _get_reconfigure_handle and _reconfigure come here.

    @property
    def supports_reconfigure(self) -> bool:
        return self._store is not None and hasattr(dist, "_reconfigure")

    def get_reconfigure_handle(self) -> str:
        """Returns what `reconfigure` of the other members takes for this process."""
        return communicators.handle_of(self._rank, self._token)

    def reconfigure(self, opts) -> Work:
        """Leaves the group's members, and makes it of those whose handles are given. Collective over these; blocks until all are there.

        Raises:
            RuntimeError: the uuid was used before, or the handles are wrong.
            CollectiveError: members are missing. The group has none then, and may be reconfigured again.
        """
        members = communicators.members_of(opts.handles)
        tokens = [member.token for member in members]
        if self._store is None:
            raise ValueError(DESTROYED)
        if self._token not in tokens:
            raise RuntimeError(f"_reconfigure: this process is not among the {len(tokens)} handles; call it on the members only, each with its own handle")
        if opts.uuid in self._uuids:
            raise RuntimeError(f"_reconfigure: the uuid {opts.uuid} was already used; take a new one each time, the same on all members")
        self._uuids.add(opts.uuid)
        if tokens != self._tokens and (self._tokens or not self._reconfigures):
            retire_models([self], bool)  # torch's hooks divide by the number of the moment
        self._leave(Left(UNCONFIGURED))
        name = hashlib.sha256(repr((opts.uuid, tokens)).encode()).hexdigest()[:32]
        seconds = self._timeout if opts.timeout is None else opts.timeout.total_seconds()
        rank = tokens.index(self._token)
        self._enter(communicators.of_handles(rank, members, name, seconds, self._timeout))
        self._rank, self._size, self._tokens, self._ranks = rank, len(tokens), tokens, []
        self._members_store = dist.PrefixStore(f"reconfigure/{name}/", self._store)
        self._compared = comparison()
        known = getattr(getattr(dist.distributed_c10d, "_world", None), "pg_group_ranks", {})  # torch 2
        if self is dist.distributed_c10d.GroupMember.WORLD and self in known:
            known[self] = {other: other for other in range(self._size)}
        return Ended(self, [])

    def get_error(self):
        """Returns the same as torch's backends: COMM_ERROR after a collective has failed."""
        kinds = torch._C._distributed_c10d.ErrorType
        return kinds.COMM_ERROR if self._communicator is not None and self._communicator.failed else kinds.SUCCESS

    # ------------------------------------------------------------------------------------------------ several at once

    def start_coalescing(self, device=None) -> None:
        self._coalescing = []

    def end_coalescing(self, device=None) -> Work:
        works, self._coalescing = self._coalescing or [], None
        return self._together(works, [tensor for work in works for tensor in work._result], None)

    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing

    # ------------------------------------------------------------------------------------------------ messages

    def _messages(self):
        if self._mail is None:
            if self._communicator is None:
                self._comm.submit()  # says why
            from muster.distributed.messages import Mail

            communicator = self._communicator
            nodes, place = communicator.nodes, communicators.place()
            self._mail = Mail(self._members_store, self._rank, self._size, self._timeout, nodes, place, self._named(communicator))
        return self._mail

    def _named(self, communicator: communicators.Communicator):
        ranks = self._ranks

        def name_of(peer: int) -> str:
            number = ranks[peer] if ranks else peer
            return f"rank {number} on {communicator.hosts[peer]}" if communicator.hosts else f"rank {number}"

        return name_of

    def send(self, tensors, dstRank: int, tag: int = 0) -> Work:
        tensor = one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.send(tensors, dstRank, tag)
        return self._begun("send", (self._messages().send(tensor, dstRank, tag),), [tensor])

    def recv(self, tensors, srcRank: int, tag: int = 0) -> Work:
        tensor = one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.recv(tensors, srcRank, tag)
        return self._receive(tensor, srcRank, tag)

    def recv_anysource(self, tensors, tag: int = 0) -> Work:
        return self._receive(one(tensors), -1, tag)

    recvAnysource = recv_anysource

    def _receive(self, tensor: torch.Tensor, source: int, tag: int) -> Work:
        direct = has_plain_memory(tensor) and tensor.device.type == "cpu"
        whole = tensor.detach() if direct else torch.empty(tensor.shape, dtype=tensor.dtype)
        request = self._messages().receive(whole, source, tag)
        work = self._begun("recv", (request,), [tensor], None if direct else lambda: tensor.copy_(whole))
        request.when_known(lambda sender: setattr(work, "_source", sender))
        return work

    # ------------------------------------------------------------------------------------------------ end

    def _leave(self, instead: Left) -> None:
        communicator, self._communicator, self._comm = self._communicator, None, instead
        mail, self._mail = self._mail, None
        self._names.clear()
        self._members_store = self._others = None
        if mail is not None:
            mail.close()
        if communicator is not None:
            communicator.end()

    def shutdown(self) -> None:
        """Ends the group on this rank. Does not wait for the others."""
        self._store = None  # its server must end with the group though a Work is kept
        self._leave(Left(DESTROYED))

    def abort(self) -> None:
        """Ends the group's collectives on this rank, those that are under way too. One that was made with enable_reconfigure may be reconfigured."""
        if not self._reconfigures:
            self.shutdown()
            return
        if self._communicator is not None:
            self._communicator.note_failure()
        self._leave(Left(UNCONFIGURED))

    def __del__(self) -> None:
        try:
            self.shutdown()
        except Exception:  # noqa: BLE001  the interpreter may be ending
            pass


def create(options, backend_options=None) -> MusterProcessGroup:
    """Makes a process group. Collective over its members; torch.distributed calls it.

    Raises:
        CollectiveError: members are missing or cannot reach each other.
    """
    seconds = options.timeout.total_seconds()
    if getattr(options, "enable_reconfigure", False):  # torch 2.14 and later
        return MusterProcessGroup(options.store, options.group_rank, options.group_size, seconds, str(options.group_id)[:12], [], True)
    return _make(options.store, options.group_rank, options.group_size, seconds, list(options.global_ranks_in_group), str(options.group_id))


def _make(store, rank: int, size: int, timeout: float, ranks: List[int], name: str) -> MusterProcessGroup:
    if ranks == list(range(size)) and communicators.is_joined(rank, size):
        ranks = []
    made = MusterProcessGroup(store, rank, size, timeout, name[:12], ranks)
    if ranks and world.is_initialized() and world.cross_size() > 1:
        made._enter(communicators.of_world(ranks, name[:12]))
    elif ranks and communicators.hears_of_losses():
        made._enter(communicators.of_generation(ranks, name, timeout))
    elif ranks:
        made._enter(communicators.of_members(store, rank, size, timeout))
    else:
        made._enter(communicators.of_all(store, rank, size, timeout))
    return made
