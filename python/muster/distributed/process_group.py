"""Runs torch.distributed's collectives over muster: the process group that `init_process_group("muster")` makes."""

from __future__ import annotations

import torch
import _muster_native as native
from muster import world
from muster._torch_types import has_plain_memory
from muster.distributed import communicators
from muster.distributed.group import one
from muster.distributed.reducing import ReducingGroup
from muster.distributed.work import Work


class MusterProcessGroup(ReducingGroup):
    """A process group. torch.distributed calls it; its methods are those of torch's ProcessGroup.

    Every member calls the same collectives in the same order. The calls are matched by kind, type, size and their number among such.
    """

    # ------------------------------------------------------------------------------------------------ barriers

    def _submit_barrier(self):
        nothing = torch.zeros(1, dtype=torch.uint8)
        return self._submit(native.ALLREDUCE, "barrier", native.MAX, nothing, nothing)

    def barrier(self, opts=None) -> Work:
        return self._begun("barrier", (self._submit_barrier(),), [], None, opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks are here. After `timeout` the CollectiveError names the ranks that are not, all of them in any case."""
        Work(self, "barrier", (self._submit_barrier(),), [], None, None).wait(timeout)

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
        communicator, self._communicator = self._communicator, None
        mail, self._mail = self._mail, None
        self._make_mail = None  # holds the store, whose server must end with the group though a Work is kept
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
    store, rank, size = options.store, options.group_rank, options.group_size
    timeout = options.timeout.total_seconds()
    ranks = list(options.global_ranks_in_group)
    if ranks == list(range(size)) and communicators.is_joined(rank, size):
        ranks = []
    label = str(options.group_id)[:12]
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
