"""Runs collectives on PyTorch's tensors: `import muster.torch as hvd` in place of `import horovod.torch as hvd`.

Importing it makes no process a rank: `init()` does. Nothing is compiled against torch; any torch from 1.13 on will do.
"""

from _muster_torch_backend import register as _register_backend
from muster.torch import elastic
from muster.torch.compression import Compression
from muster.torch.functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from muster.torch.mpi_ops import *  # noqa: F401,F403
from muster.torch.ddp import DDPState, ddp_hook
from muster.torch.optimizer import DistributedOptimizer
from muster.torch.sync_batch_norm import SyncBatchNorm

_register_backend()  # torch before 2.5 does not find the torch.distributed backend "muster" by itself
