"""Serves `horovod.tensorflow.functions` by `muster.tensorflow.functions`."""

import sys

import muster.tensorflow.functions

sys.modules[__name__] = muster.tensorflow.functions
