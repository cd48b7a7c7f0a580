"""Serves `horovod.tensorflow.mpi_ops` by `muster.tensorflow.mpi_ops`."""

import sys

import muster.tensorflow.mpi_ops

sys.modules[__name__] = muster.tensorflow.mpi_ops
