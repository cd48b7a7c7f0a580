"""Serves `horovod.tensorflow.elastic` by `muster.tensorflow.elastic`."""

import sys

import muster.tensorflow.elastic

sys.modules[__name__] = muster.tensorflow.elastic
