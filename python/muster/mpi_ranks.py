"""Finds which ranks of the job the members of an mpi4py communicator are."""

from __future__ import annotations

from typing import Any, List


def ranks_of(comm: Any) -> List[int]:
    """The ranks in MPI.COMM_WORLD, which are the job's, in the communicator's own order; none for MPI.COMM_NULL. Not collective."""
    from mpi4py import MPI

    if comm == MPI.COMM_NULL:
        return []
    group = comm.Get_group()
    whole = MPI.COMM_WORLD.Get_group()
    try:
        return list(MPI.Group.Translate_ranks(group, list(range(group.Get_size())), whole))
    finally:
        group.Free()
        whole.Free()


def is_world(comm: Any) -> bool:
    """Returns whether it has all ranks of the job, in their order."""
    from mpi4py import MPI

    return ranks_of(comm) == list(range(MPI.COMM_WORLD.Get_size()))
