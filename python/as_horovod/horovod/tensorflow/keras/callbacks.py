"""Serves `horovod.tensorflow.keras.callbacks` by `muster.tensorflow.keras.callbacks`."""

import sys

import muster.tensorflow.keras.callbacks

sys.modules[__name__] = muster.tensorflow.keras.callbacks
