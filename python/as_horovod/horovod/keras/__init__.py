"""Serves `horovod.keras` by `muster.keras`."""

import muster.keras as _real
from muster.keras import *  # noqa: F401,F403


def __getattr__(name):
    return getattr(_real, name)


def __dir__():
    return dir(_real)
