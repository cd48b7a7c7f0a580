"""Serves `horovod.torch.elastic` by `muster.torch.elastic`."""

import muster.torch.elastic as _real
from muster.torch.elastic import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_real, name)


def __dir__():
    return dir(_real)
