"""Reduces gradients over the ranks of a job: `import muster.torch as hvd`, `torch.distributed` backend "muster", `muster.data`.

Importing this package imports neither torch nor NumPy, starts no thread and makes no process a rank of MPI: `init()` does, collectively.
"""

from muster.errors import CollectiveError
from muster.membership import init, shutdown
from muster.metrics import counters
from muster.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from muster.world import (
    backend,
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    size,
)

__version__ = "0.1.0"

__all__ = [
    "CollectiveError",
    "ProcessSet",
    "add_process_set",
    "backend",
    "counters",
    "cross_rank",
    "cross_size",
    "global_process_set",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "remove_process_set",
    "shutdown",
    "size",
]
