"""Serves `horovod.torch.mpi_ops` by `muster.torch.mpi_ops`."""

import sys

import muster.torch.mpi_ops

sys.modules[__name__] = muster.torch.mpi_ops
