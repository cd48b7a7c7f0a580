"""Reads datasets that `muster stage convert` made: Dataset for torch's DataLoader, Sampler for ranks, Loader for batches without workers.

Importing this imports neither torch nor NumPy and loads no library. The first Dataset, Sampler or Loader loads _muster_data, and with it HDF5 and libmpi; a
process that only imports a pickled Dataset of a contiguous file, such as a DataLoader's worker, does not.
"""

from .dataset import Dataset
from .errors import DataError, Error, InternalError, LibraryError, NotFoundError, ReadError, UnavailableError, UsageError
from .loader import Batch, Loader, Report
from .sampler import Sampler

__all__ = [
    "Batch",
    "DataError",
    "Dataset",
    "Error",
    "InternalError",
    "LibraryError",
    "Loader",
    "NotFoundError",
    "ReadError",
    "Report",
    "Sampler",
    "UnavailableError",
    "UsageError",
]
