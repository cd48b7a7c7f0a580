"""Serves `horovod.common.elastic` by `muster.elastic`."""

import sys

import muster.elastic

sys.modules[__name__] = muster.elastic
