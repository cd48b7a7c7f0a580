"""Serves `horovod.keras.callbacks` by `muster.keras.callbacks`."""

import sys

import muster.keras.callbacks

sys.modules[__name__] = muster.keras.callbacks
