"""Keeps what training has reached, and goes on from there without ranks that are lost: `State`, `ObjectState`, `run_fn`, `reform_world`. Needs no framework.

The world changes where `muster run --min-np N` has started the ranks. Anywhere else a rank that fails ends the others, with its reason.
"""

from __future__ import annotations

import copy
import functools
import os
import queue
import time
from typing import Any, Callable, Dict, Iterable, List, Optional

import _muster_native as native
from muster import membership, world
from muster.errors import CollectiveError, HostsUpdatedInterrupt


class HostUpdateResult:
    """Says what happened to the hosts: bits, which add up."""

    no_update = 0
    removed = 1
    added = 2
    mixed = removed | added


class _HostMessages(queue.Queue):
    """Holds a state's messages. Whoever looks into it finds what the launcher has told by then."""

    def __init__(self, state: "State") -> None:
        super().__init__()
        self._state = state

    def _hear(self) -> None:
        changed = native.hosts_changed()
        if changed:
            self._state.on_hosts_updated(time.time(), changed)

    def empty(self) -> bool:
        self._hear()
        return super().empty()

    def get_nowait(self) -> Any:
        self._hear()
        return super().get_nowait()


class State:
    """Holds what is saved, restored and spread over the ranks. Derive from it, and write save, restore and sync."""

    def __init__(self, bcast_object: Callable[[Any], Any], get_rank: Callable[[], int]) -> None:
        """
        Args:
            bcast_object: gives all ranks rank 0's object; collective.
            get_rank: this rank's number.
        """
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages: "queue.Queue" = _HostMessages(self)
        self._last_updated_timestamp: Any = 0
        self._reset_callbacks: List[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Has these called, in this order, whenever the world was made again: to scale learning rates, for instance."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called when the world was made again, before the state is spread."""
        self._host_messages = _HostMessages(self)
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: Any, update_res: int) -> None:
        """Tells that hosts have changed (`HostUpdateResult`) at some time, growing. Any thread. Heard by the next `commit`, of rank 0 for all."""
        self._host_messages.put((timestamp, update_res))

    def commit(self) -> None:
        """Saves the state, and raises HostsUpdatedInterrupt, on all ranks at once, if hosts have changed. Collective."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks if rank 0 has heard of changed hosts since the last time. Collective."""
        before, newest, update = self._last_updated_timestamp, self._last_updated_timestamp, HostUpdateResult.no_update
        while True:
            try:
                timestamp, what = self._host_messages.get_nowait()
            except queue.Empty:
                break
            if timestamp > newest:
                newest = timestamp
                update |= what
        before, self._last_updated_timestamp, update = self._bcast_object((before, newest, update))
        if self._last_updated_timestamp > before:
            raise HostsUpdatedInterrupt(update == HostUpdateResult.removed)

    def save(self) -> None:
        """Keeps a copy of the state in this process."""
        raise NotImplementedError

    def restore(self) -> None:
        """Goes back to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks rank 0's state, and saves it. Collective."""
        raise NotImplementedError

    def recover(self) -> "tuple[bool, bool]":
        """Goes back to the newest commit that all ranks find in memory after a restart of the run. Collective. Returns whether there was one, and whether rank 0's
        state is to be spread all the same."""
        return False, True

    def reset(self) -> None:
        """Called before the callbacks of `on_reset`; does nothing unless overridden."""


class ObjectState(State):
    """State of plain values: keyword arguments, which become attributes. They must be such as can be copied and pickled."""

    def __init__(self, bcast_object: Callable[[Any], Any], get_rank: Callable[[], int], **kwargs: Any) -> None:
        self._saved_state: Dict[str, Any] = {}
        super().__init__(bcast_object, get_rank)
        self._take(kwargs)

    def _take(self, values: Dict[str, Any]) -> None:
        self._saved_state = copy.deepcopy(values)
        for name, value in values.items():
            setattr(self, name, value)

    def save(self) -> None:
        self._saved_state = copy.deepcopy({name: getattr(self, name) for name in self._saved_state})

    def restore(self) -> None:
        self._take(self._saved_state)

    def sync(self) -> None:
        if self._saved_state:
            self._take(self._bcast_object({name: getattr(self, name) for name in self._saved_state}))


def reform_world(reason: BaseException, has_state: bool = True) -> bool:
    """Makes the world again after `reason`, a CollectiveError or HostsUpdatedInterrupt, with the ranks there are now. Collective over these.

    Outside of an elastic run a failure is raised again, and after HostsUpdatedInterrupt the same ranks begin anew. See `muster.membership.reform`. Programs that call
    this and not `run_fn` call `announce` before.

    Args:
        reason: why.
        has_state: whether this rank can give the others what a newcomer lacks.

    Returns:
        Whether rank 0's state is to be given to all: the same on all ranks.
    """
    failed = isinstance(reason, CollectiveError)
    if native.generation() is None:
        if failed:
            raise reason
        membership.shutdown()
        membership.init()
        return not getattr(reason, "skip_sync", False)
    return membership.reform(has_state, at_commit=not failed)


def announce() -> bool:
    """Tells the launcher that this program calls `reform_world` when a collective fails, so that the others need not end with a rank that is lost.

    Returns:
        Whether the launcher can go on without lost ranks.
    """
    return native.announce()


class _VainWorlds:
    """Counts worlds in a row that failed soon after they had begun, and of which nobody was gone: another one would end the same way."""

    MOST = 10
    SOON_S = 10.0

    def __init__(self) -> None:
        self._count, self._members, self._began = 0, "", time.monotonic()

    def are_enough(self, reason: BaseException) -> bool:
        members, now = os.environ.get("MUSTER_MEMBERS", ""), time.monotonic()
        vain = isinstance(reason, CollectiveError) and members == self._members and now - self._began < self.SOON_S
        self._count = self._count + 1 if vain else 0
        self._members, self._began = members, now
        return self._count == self.MOST


def run_fn(func: Callable[..., Any], reset: Optional[Callable[..., None]] = None, reform: Callable[..., bool] = reform_world) -> Callable[..., Any]:
    """Wraps func(state, …) so that it is begun again from its state when the world has changed.

    It spreads the state and calls `func`. On CollectiveError or HostsUpdatedInterrupt it has the world made again; restores the state after the former, and keeps
    it after the latter; calls `state.on_reset()`, and begins anew. State is spread unless the launcher says that all ranks have the same.

    Args:
        func: the training; its first argument is the `State`.
        reset: makes the world again; called without arguments. None: `reform` does.
        reform: makes the world again; of the arguments and result of `reform_world`.

    Returns:
        A function of the same arguments. Its result is that of `func`. The failure of ten worlds in a row, each within ten seconds and with no rank gone, what `reset` raises, and whatever else `func` raises, goes on to the caller.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        announce()
        must_reset, must_sync, has_state = False, True, False
        vain = _VainWorlds()
        begins = not membership.joined()  # a rank that joins the others finds them in sync()
        while True:
            try:
                if begins:
                    begins = False
                    has_state, must_sync = state.recover()
                if must_reset:
                    state.on_reset()
                    must_reset = False
                if must_sync:
                    state.sync()
                has_state = True
                return func(state, *args, **kwargs)
            except (CollectiveError, HostsUpdatedInterrupt) as caught:
                reason: Exception = caught
            if vain.are_enough(reason):
                raise reason
            try:
                if reset is None:
                    must_sync = reform(reason, has_state)
                else:
                    reset()
                    must_sync = not getattr(reason, "skip_sync", False)
            finally:
                # Not before: a rank that has not heard of the failure may still write to tensors of this one. Without a world what was raised says why.
                if isinstance(reason, CollectiveError) and world.is_initialized():
                    state.restore()
            must_reset = True

    return wrapper
