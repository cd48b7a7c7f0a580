"""Runs torch.distributed's collectives over muster: the process group that `init_process_group("muster")` makes."""

from __future__ import annotations

from datetime import timedelta
from typing import List

import torch
import torch.distributed as dist
import _muster_native as native
from muster import world
from muster._torch_types import has_plain_memory
from muster.distributed import communicators
from muster.distributed.group import Left, one
from muster.distributed.reducing import ReducingGroup
from muster.distributed.work import Work
from muster.errors import CollectiveError


class MusterProcessGroup(ReducingGroup):
    """A process group. torch.distributed calls it; its methods are those of torch's ProcessGroup.

    Every member calls the same collectives in the same order. The calls are matched by kind, type, size and their number among such.
    """

    is_of_muster = True

    # ------------------------------------------------------------------------------------------------ barriers

    def _submit_barrier(self):
        nothing = torch.zeros(1, dtype=torch.uint8)
        return self._submit(native.ALLREDUCE, "barrier", native.MAX, nothing, nothing)

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
        """Its ranks have met already."""

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
        made = _make(dist.PrefixStore(f"{name}/", self._store), list(ranks).index(self._rank), len(ranks), seconds, world_ranks, name)
        made._is_split = True
        made.setGroupName(name)
        made.setGroupDesc(group_desc or "undefined")
        return made

    def get_group_store(self):
        return self._store

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
            if self._make_mail is None:
                raise ValueError("the process group has been destroyed; make another")
            self._mail = self._make_mail()
        return self._mail

    def send(self, tensors, dst: int, tag: int = 0) -> Work:
        tensor = one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.send(tensors, dst, tag)
        return self._begun("send", (self._messages().send(tensor, dst, tag),), [tensor])

    def recv(self, tensors, src: int, tag: int = 0) -> Work:
        tensor = one(tensors)
        other = self._other(tensor)
        if other is not None:
            return other.recv(tensors, src, tag)
        return self._receive(tensor, src, tag)

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

    def shutdown(self) -> None:
        """Ends the group on this rank. Does not wait for the others."""
        if self._communicator is None:
            return
        communicator, self._communicator, self._comm = self._communicator, None, Left()
        mail, self._mail = self._mail, None
        self._make_mail = self._store = None  # the store's server must end with the group though a Work is kept
        if mail is not None:
            mail.close()
        communicator.end()

    abort = shutdown

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
    return _make(options.store, options.group_rank, options.group_size, seconds, list(options.global_ranks_in_group), str(options.group_id))


def _make(store, rank: int, size: int, timeout: float, ranks: List[int], name: str) -> MusterProcessGroup:
    if ranks == list(range(size)) and communicators.is_joined(rank, size):
        ranks = []
    label = name[:12]
    if ranks and world.is_initialized() and world.cross_size() > 1:
        communicator = communicators.of_world(ranks, label)
    elif ranks:
        communicator = communicators.of_members(store, rank, size, timeout)
    else:
        communicator = communicators.of_all(store, rank, size, timeout)

    def mail():
        from muster.distributed.messages import Mail

        def name_of(peer: int) -> str:
            number = ranks[peer] if ranks else peer
            return f"rank {number} on {communicator.hosts[peer]}" if communicator.hosts else f"rank {number}"

        return Mail(store, rank, size, timeout, communicator.nodes, communicators.place(), name_of)

    return MusterProcessGroup(store, rank, size, timeout, label, ranks, communicator, mail)
