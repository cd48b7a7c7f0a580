"""Refuses DistributedDataParallel objects of process groups whose members have changed."""

from __future__ import annotations

import gc
from typing import Any, Callable, List, Sequence

from torch.nn.parallel import DistributedDataParallel


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
    """Those that can still take a step. They are found by what refers to the groups: a list of all objects would hold tensors that torch frees meanwhile."""
    holders = gc.get_referrers(*groups) if groups else []
    owners = gc.get_referrers(*dicts) if (dicts := [one for one in holders if type(one) is dict and "reducer" in one]) else []
    found = {id(one): one for one in [*holders, *owners] if DistributedDataParallel in type(one).__mro__}
    return [one for one in found.values() if any(one.process_group is group for group in groups) and not isinstance(one.reducer, _Retired)]
