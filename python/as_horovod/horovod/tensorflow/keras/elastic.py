"""Serves `horovod.tensorflow.keras.elastic` by `muster.tensorflow.keras.elastic`."""

import sys

import muster.tensorflow.keras.elastic

sys.modules[__name__] = muster.tensorflow.keras.elastic
