"""Runs training that can be begun again from its state: `run`, `TorchState`, `ElasticSampler`."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from muster.elastic import reform_world, run_fn
from muster.errors import CollectiveError
from muster.torch.elastic.sampler import ElasticSampler
from muster.torch.elastic.state import TorchState


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates func(state, …): spreads the state from rank 0, runs it, and begins again where the world has changed. See `muster.elastic.run_fn`.

    Nothing collective may be called before it that ranks which come later would not call. A failure that cannot be mended is raised, and ends the
    rank. Where torch.distributed's default group is muster's, it is made again too (`muster.distributed.reform`): DistributedDataParallel objects are to be made
    in `func`.
    """

    @functools.wraps(func)
    def called(state: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return func(state, *args, **kwargs)
        except RuntimeError as error:
            groups = _groups()
            if isinstance(error, CollectiveError) or groups is None or not groups.is_failure(error):
                raise
            raise groups.failure_of(error) from error

    return run_fn(called, reform=_reform)


def _groups() -> Any:
    """Returns what knows of torch.distributed's groups, where the default one is muster's."""
    groups = sys.modules.get("muster.distributed.reforming")
    return groups if groups is not None and groups.is_default() else None


def _reform(reason: Exception, has_state: bool) -> bool:
    groups = _groups()
    return reform_world(reason, has_state) if groups is None else groups.reform(reason, has_state)


__all__ = ["ElasticSampler", "TorchState", "run"]
