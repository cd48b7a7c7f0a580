"""Loads the module _muster_data when the first Dataset, Sampler or Loader is made.

It needs HDF5, and with it libmpi, in this process; it initialises MPI only for a Loader with memory="shared" over several nodes.
"""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any, NamedTuple, Optional, Sequence

from .errors import CLASS_OF_CODE, UnavailableError

hdf5_lock = threading.Lock()  #: HDF5 has one lock or none: who opens or reads a file through the library holds this one


def _forget_lock() -> None:
    global hdf5_lock
    hdf5_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)  # another thread of the parent may have held it

_loaded: Any = None


def library() -> Any:
    """The module _muster_data, loaded at the first call.

    Raises:
        UnavailableError: it was not built, or needs something that is not here.
    """
    global _loaded
    if _loaded is None:
        try:
            module = importlib.import_module("_muster_data")
        except ImportError as problem:
            raise UnavailableError(
                f"muster.data could not load _muster_data, which reads datasets: {problem}; install muster built with HDF5 and MPI"
            ) from None
        module.error_classes.update(CLASS_OF_CODE)
        _loaded = module
    return _loaded


class Part(NamedTuple):
    """A rank's part of an epoch."""

    epoch: int
    rank: int
    world: int
    start: int
    node_first: int
    node_ranks: int


class Transform(NamedTuple):
    """Says how bytes become f32."""

    channels: int
    crop_height: int
    crop_width: int
    pad: int
    random: bool
    flip: bool
    mean: Optional[Sequence[float]]
    deviation: Optional[Sequence[float]]


def open_dataset(path: str, split: str) -> Any:
    """Hold hdf5_lock."""
    return library().open(os.fsencode(path), split)
