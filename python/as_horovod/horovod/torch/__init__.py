"""Serves `horovod.torch` by `muster.torch`."""

import muster.torch as _real
from muster.torch import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_real, name)


def __dir__():
    return dir(_real)
