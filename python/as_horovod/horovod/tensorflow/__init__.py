"""Serves `horovod.tensorflow` by `muster.tensorflow`."""

import muster.tensorflow as _real
from muster.tensorflow import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_real, name)


def __dir__():
    return dir(_real)
