"""Tells what this installation can use: MPI, NCCL and the others that scripts written for Horovod ask for."""

from __future__ import annotations

import functools
import os

import _muster_native as native
from muster import world

_MPI_BACKENDS = ("mpi", "hierarchical")


@functools.lru_cache(maxsize=None)
def library() -> str:
    """The file of libmuster_comm that this process has loaded; its bare name if that is unknown."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if "/libmuster_comm.so" in "/" + path:
                return "/" + path
    return "libmuster_comm"


def module(name: str) -> str:
    """The file of the module that brings a library in at run time: "mpi". It need not be there."""
    return os.path.join(os.path.dirname(os.path.realpath(library())), "muster", f"libmuster_comm_{name}.so")


def mpi_built() -> bool:
    """Returns whether muster can use MPI here."""
    return os.path.exists(module("mpi"))


def mpi_enabled() -> bool:
    """Returns whether the ranks exchange over MPI now. False before `init`."""
    return world.is_initialized() and world.backend()[0] in _MPI_BACKENDS


def mpi_threads_supported() -> bool:
    """Returns whether this process has initialized MPI for any thread to call: muster asks for that wherever it uses MPI. ValueError before `init`."""
    world.comm()
    return mpi_enabled()


def gloo_built() -> bool:
    """False: muster's backends take Gloo's place."""
    return False


def gloo_enabled() -> bool:
    """False, as `gloo_built`."""
    return False


@functools.lru_cache(maxsize=None)
def nccl_built() -> int:
    """NCCL's version, 21805 for 2.18.5; 0: none was found, or muster was built without its kernels for GPUs. Loads NCCL the first time."""
    return native.built("nccl") if cuda_built() else 0


@functools.lru_cache(maxsize=None)
def cuda_built() -> bool:
    """Returns whether muster was built to reduce tensors on NVIDIA GPUs where they lie."""
    return native.built("cuda_kernels") != 0


def rocm_built() -> bool:
    """False: tensors on AMD GPUs have to be moved to the CPU."""
    return False


def ddl_built() -> bool:
    """False: IBM's DDL is not used."""
    return False


def ccl_built() -> bool:
    """False: Intel's oneCCL is not used."""
    return False
