"""Makes the default process group again, without ranks that are lost, in an elastic run (`muster run --min-np N`): `reform`."""

from __future__ import annotations

from datetime import timedelta
from typing import Optional

import torch.distributed as dist
from muster import elastic, membership, world
from muster.distributed import communicators
from muster.distributed.retiring import retire_models
from muster.errors import CollectiveError, HostsUpdatedInterrupt
import _muster_native as native

_MEETING = timedelta(seconds=60)  # to make a group, of ranks that were all there a moment ago


def is_default() -> bool:
    """Whether torch.distributed's default group is muster's."""
    return dist.is_available() and dist.is_initialized() and hasattr(dist.distributed_c10d._get_default_group(), "is_of_muster")


def is_failure(reason: BaseException) -> bool:
    """Whether a collective of this world has failed. DistributedDataParallel's backward pass makes a plain RuntimeError of it."""
    return isinstance(reason, CollectiveError) or isinstance(reason, RuntimeError) and communicators.has_failed()


def failure_of(reason: BaseException) -> CollectiveError:
    """The CollectiveError that `reason` is, or was before it came through DistributedDataParallel."""
    return reason if isinstance(reason, CollectiveError) else CollectiveError(str(reason), native.E_PEER)


def _make(backend: str, timeout: Optional[timedelta]) -> None:
    """Makes the default group of the world's ranks, on all of them or on none. Raises CollectiveError where a rank was lost meanwhile."""
    problem: Optional[Exception] = None
    try:
        dist.init_process_group(backend, timeout=_MEETING)
        group = dist.distributed_c10d._get_default_group()
        if hasattr(group, "is_of_muster"):
            group.set_timeout(dist.distributed_c10d.default_pg_timeout if timeout is None else timeout)
    except (RuntimeError, OSError) as error:  # as the store's are
        problem = error
    if world.gather_numbers((problem is None,), "muster.c10d.made").count((0,)) == 0:
        return
    _destroy()
    raise problem or RuntimeError("reform: another rank could not make its process group; its message says why")


def _destroy() -> None:
    c10d = dist.distributed_c10d
    if dist.is_initialized():
        groups = list(getattr(c10d, "_pg_map", None) or c10d._world.pg_map)
        retire_models(groups, lambda hook: hook == "ddp_hook")  # which reduces over muster.world
        dist.destroy_process_group()


def reform(reason: Optional[BaseException] = None, has_state: bool = True, timeout: Optional[timedelta] = None) -> bool:
    """Leaves all process groups, and makes the default one of the ranks that there are now, in an elastic run. Collective over these.

    RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in os.environ are those of the new world. Groups of `new_group` and DistributedDataParallel objects are of no
    use any more: make them anew. Call `muster.elastic.announce` once before, so that a lost rank does not end the others. One thread calls this, and
    no other uses a group meanwhile.

    Args:
        reason: the CollectiveError, the RuntimeError that DistributedDataParallel makes of one, or HostsUpdatedInterrupt. None: there is no group yet. A rank
            that may be started in place of a lost one (`--spares`) begins so, and not by init_process_group.
        has_state: whether this rank can give the others what a newcomer lacks; the first that can becomes rank 0.
        timeout: of the group's collectives; None: that of the former group, or 30 minutes.

    Returns:
        Whether rank 0's state is to be given to all: the same on all ranks.

    Raises:
        What `reason` is: it is no failure of a collective, or the run is not elastic.
        CollectiveError: the launcher ends the run.
    """
    if reason is None:
        if dist.is_initialized():
            raise ValueError("reform() without a reason begins, but there is a process group already; give it the error of the collective that failed")
        membership.init()
        try:
            _make("muster", timeout)
            return membership.joined()
        except CollectiveError as error:
            return _form(error, "muster", False, timeout)
    if not isinstance(reason, HostsUpdatedInterrupt) and not is_failure(reason):
        raise reason
    if timeout is None and is_default():
        timeout = timedelta(seconds=dist.distributed_c10d._get_default_group()._timeout)
    return _form(reason, dist.get_backend() if dist.is_initialized() else "muster", has_state, timeout)


def _form(reason: BaseException, backend: str, has_state: bool, timeout: Optional[timedelta]) -> bool:
    failed = not isinstance(reason, HostsUpdatedInterrupt)
    if failed and native.generation() is None:
        raise reason
    if failed:
        reason = failure_of(reason)
    spreads = False
    while True:
        _destroy()
        spreads = elastic.reform_world(reason, has_state) or spreads
        communicators.begin_anew()
        try:
            _make(backend, timeout)
            return spreads
        except CollectiveError as error:
            reason = error
