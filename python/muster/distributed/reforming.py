"""Makes the default process group again without lost ranks, in an elastic run (`muster run --min-np N`): `reform`. Refuses models of former groups."""

from __future__ import annotations

import gc
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from muster import elastic, membership, world
from muster.distributed import communicators
from muster.errors import CollectiveError, HostsUpdatedInterrupt
import _muster_native as native

_MEETING = timedelta(seconds=60)  # to make a group, of ranks that were all there a moment ago


class _Retired:
    """Stands for the reducer of a model, to refuse its next step."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            "this DistributedDataParallel object was made in an earlier generation of the world, and would divide gradients by the number of its ranks; "
            "make it anew: model = DistributedDataParallel(model.module)"
        )


def retire_models(groups: Sequence[Any], keeps: Callable[[str], bool]) -> None:
    """Refuses the next step of DistributedDataParallel objects over these process groups. Without gradients their forward pass goes on.

    Their reducers keep what they began in a step that has failed, the number of ranks by which they divide included, and would take the next step with it. They
    also take part in backward passes of others over the same parameters. With a communication hook they do not divide.

    Args:
        groups: process groups.
        keeps: whether one with a hook of this name, "" without any, may stay.
    """
    for one in _models_of(groups):
        if not keeps(one._get_ddp_logging_data().get("comm_hook", "")):
            one.reducer = one.logger = _Retired()


def _models_of(groups: Sequence[Any]) -> List[DistributedDataParallel]:
    """Returns those that can still take a step. They are found by what refers to the groups: a list of all objects would hold tensors that torch frees meanwhile."""
    holders = gc.get_referrers(*groups) if groups else []
    owners = gc.get_referrers(*dicts) if (dicts := [one for one in holders if type(one) is dict and "reducer" in one]) else []
    found = {id(one): one for one in [*holders, *owners] if DistributedDataParallel in type(one).__mro__}
    return [one for one in found.values() if any(one.process_group is group for group in groups) and not isinstance(one.reducer, _Retired)]


def is_default() -> bool:
    """Returns whether torch.distributed's default group is muster's."""
    return dist.is_available() and dist.is_initialized() and hasattr(dist.distributed_c10d._get_default_group(), "is_of_muster")


def is_failure(reason: BaseException) -> bool:
    """Returns whether a collective of this world has failed. DistributedDataParallel's backward pass makes a plain RuntimeError of it."""
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
