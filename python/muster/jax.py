"""Joins JAX's processes to one program: `muster.jax.initialize()`, before anything else of JAX is used.

    import muster.jax

    muster.jax.initialize()
    print(jax.process_index(), jax.process_count())

By itself JAX finds its processes where srun, or mpirun of Open MPI, starts them. It reads neither JAX_NUM_PROCESSES nor JAX_PROCESS_ID, which muster sets.
"""

from __future__ import annotations

import os
from typing import Any


def initialize(**arguments: Any) -> None:
    """jax.distributed.initialize() with the numbers of this rank of `muster run`. Elsewhere that function as it is. Collective over all ranks.

    Args:
        arguments: those of jax.distributed.initialize; they go before muster's.
    """
    import jax

    found = {
        "coordinator_address": os.environ.get("JAX_COORDINATOR_ADDRESS"),
        "num_processes": os.environ.get("JAX_NUM_PROCESSES", ""),
        "process_id": os.environ.get("JAX_PROCESS_ID", ""),
    }
    if "MUSTER_RANK" in os.environ and found["num_processes"].isdigit() and found["process_id"].isdigit():
        numbers = {name: int(found[name]) for name in ("num_processes", "process_id")}
        arguments = {"coordinator_address": found["coordinator_address"], **numbers, **arguments}
    jax.distributed.initialize(**arguments)
