"""Serves `muster.tensorflow.keras.elastic` by `muster.keras.elastic`."""

import sys

import muster.keras.elastic

sys.modules[__name__] = muster.keras.elastic
