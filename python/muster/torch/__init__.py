"""Runs collectives on PyTorch's tensors: `import muster.torch as hvd` in place of `import horovod.torch as hvd`.

Importing it makes no process a rank: `init()` does. Nothing is compiled against torch; any torch from 1.13 on will do.
"""

from _muster_torch_backend import register as _register_backend
from muster.torch import elastic
from muster.torch.compression import Compression
from muster.torch.functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from muster.torch.mpi_ops import (
    Adasum,
    Average,
    HorovodInternalError,
    Max,
    Min,
    ProcessSet,
    Product,
    Sum,
    add_process_set,
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    init,
    is_homogeneous,
    is_initialized,
    join,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    poll,
    rank,
    reducescatter,
    reducescatter_async,
    remove_process_set,
    rocm_built,
    shutdown,
    size,
    sparse_allreduce_async,
    start_timeline,
    stop_timeline,
    synchronize,
)
from muster.torch.ddp import DDPState, ddp_hook
from muster.torch.optimizer import DistributedOptimizer
from muster.torch.sync_batch_norm import SyncBatchNorm

_register_backend()  # torch before 2.5 does not find the torch.distributed backend "muster" by itself
