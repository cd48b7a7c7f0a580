"""Runs training that can be begun again from its state: `run`, `TorchState`, `ElasticSampler`."""

from __future__ import annotations

from typing import Any, Callable

from muster.elastic import run_fn
from muster.torch.elastic.sampler import ElasticSampler
from muster.torch.elastic.state import TorchState


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates func(state, …): spreads the state from rank 0, runs it, and begins again where the world has changed. See `muster.elastic.run_fn`.

    Nothing collective may be called before it that ranks which come later would not call. A failure that cannot be mended is raised, and ends the
    rank.
    """
    return run_fn(func)


__all__ = ["ElasticSampler", "TorchState", "run"]
