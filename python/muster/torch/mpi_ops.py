"""Gathers the collectives of muster.torch under the module name that scripts import them from."""

from muster._shared import *  # noqa: F401,F403
from muster._barrier import barrier, join
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
from muster.torch._broadcast import broadcast, broadcast_, broadcast_async, broadcast_async_
from muster.torch._reducescatter import grouped_reducescatter, grouped_reducescatter_async, reducescatter, reducescatter_async
from muster.torch._reductions import Adasum, Average, Max, Min, Product, Sum
from muster.torch._requests import poll, synchronize
from muster.torch._sparse import sparse_allreduce_async
from muster.torch.compression import Compression
