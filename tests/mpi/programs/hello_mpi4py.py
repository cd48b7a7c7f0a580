"""The same as hello_mpi.c, from Python."""
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
world.Barrier()
print(f"rank {world.rank} of {world.size} sum {total}")
sys.exit(0 if total == world.size * (world.size + 1) // 2 else 1)
