"""Serves `horovod.tensorflow.keras` by `muster.tensorflow.keras`."""

import muster.tensorflow.keras as _real
from muster.tensorflow.keras import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_real, name)


def __dir__():
    return dir(_real)
