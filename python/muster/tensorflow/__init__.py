"""Runs collectives on TensorFlow's tensors: `import muster.tensorflow as hvd` in place of `import horovod.tensorflow as hvd`. TensorFlow 2 only.

Tested by hand only, with TensorFlow 2.21: the tests of each change run it only where TensorFlow is installed.
"""

from muster._shared import *  # noqa: F401,F403
from muster.keras._optimizer import DistributedOptimizer
from muster.tensorflow import elastic
from muster.tensorflow.functions import allgather_object, broadcast_global_variables, broadcast_object, broadcast_object_fn, broadcast_variables
from muster.tensorflow.gradients import DistributedGradientTape, PartialDistributedGradientTape
from muster.tensorflow.mpi_ops import (
    Adasum, Average, Compression, Max, Min, Product, Sum, allgather, allreduce, alltoall, barrier, broadcast, broadcast_, grouped_allgather,
    grouped_allreduce, grouped_reducescatter, join, local_rank_op, local_size_op, rank_op, reducescatter, size_op,
)  # fmt: skip
