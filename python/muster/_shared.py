"""The names that muster.torch, muster.tensorflow and muster.keras have in common. They are the same as in Horovod's modules."""

from muster.built import ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rocm_built
from muster.errors import CollectiveError as HorovodInternalError
from muster.membership import init, shutdown
from muster.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from muster.timeline import start_timeline, stop_timeline
from muster.world import cross_rank, cross_size, is_homogeneous, is_initialized, local_rank, local_size, rank, size
