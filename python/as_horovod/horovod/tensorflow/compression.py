"""Serves `horovod.tensorflow.compression` by `muster.tensorflow.compression`."""

import sys

import muster.tensorflow.compression

sys.modules[__name__] = muster.tensorflow.compression
