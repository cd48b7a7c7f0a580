"""Gathers the collectives of muster.torch under the module name that scripts import them from."""

from __future__ import annotations

from muster.errors import CollectiveError as HorovodInternalError
from muster.membership import init, shutdown
from muster.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from muster.built import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from muster.timeline import start_timeline, stop_timeline
from muster.torch._allgather import allgather, allgather_async, grouped_allgather, grouped_allgather_async
from muster.torch._allreduce import (
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from muster.torch._alltoall import alltoall, alltoall_async
from muster.torch._barrier import barrier, join
from muster.torch._broadcast import broadcast, broadcast_, broadcast_async, broadcast_async_
from muster.torch._reducescatter import grouped_reducescatter, grouped_reducescatter_async, reducescatter, reducescatter_async
from muster.torch._reductions import Adasum, Average, Max, Min, Product, Sum
from muster.torch._requests import poll, synchronize
from muster.torch._sparse import sparse_allreduce_async
from muster.torch.compression import Compression
from muster.world import (
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    size,
)
