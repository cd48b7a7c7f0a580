"""Prints what this installation has and what it found: `python3 -m muster` (as horovodrun --check-build does)."""

from __future__ import annotations

import os
import sys
from importlib import metadata, util

import muster
import _muster_native as native
from muster import built


#: Packages that no machine of the project has at each change.
TESTED = {"keras": "Keras 3.15", "tensorflow": "TensorFlow 2.21", "jax": "JAX 0.10"}


def _version(package: str) -> str:
    """Returns its version, without importing it; "" if it is not there."""
    if util.find_spec(package) is None:
        return ""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "found"


def _dotted(version: int, major: int, minor: int) -> str:
    """A version that is written as one number, with points."""
    parts = [version // major, version % major // minor, version % minor]
    return ".".join(map(str, parts if major > 1000 else parts[:2]))


def main() -> int:
    def row(mark: bool, what: str, note: str) -> None:
        print(f"    [{'X' if mark else ' '}] {what}{' ' * max(1, 14 - len(what))}{note}")

    print(f"muster {muster.__version__}, Python {sys.version.split()[0]}\n")
    print(f"Library: {built.library()}, interface {native.abi()}\nExtension: {native.__file__}\n")
    print("Frameworks:")
    frameworks = ("torch", "PyTorch"), ("keras", "Keras"), ("tf_keras", "tf_keras"), ("tensorflow", "TensorFlow"), ("jax", "JAX"), ("numpy", "NumPy")
    for package, what in frameworks:
        version = _version(package)
        by_hand = f" (tested by hand only, with {TESTED[package]})" if package in TESTED else ""
        row(bool(version), what, (version or "not found by this Python") + by_hand)
    print("\nBackends:")
    row(True, "shm", "ranks on one node")
    row(True, "tcp", "ranks on several nodes, without MPI")
    mpi = built.module("mpi")
    row(os.path.exists(mpi), "MPI", mpi if os.path.exists(mpi) else f"{mpi} is missing")
    nccl = native.built("nccl")
    row(built.nccl_built() != 0, "NCCL", _dotted(nccl, 10000, 100) if nccl else "not found by the loader")
    cuda = native.built("cuda")
    row(cuda != 0 and built.cuda_built(), "CUDA", f"driver {_dotted(cuda, 1000, 10)}" if cuda else "no driver and device here")
    print("\nOne H100 has run muster's code for device memory, from C++; PyTorch's tensors on a GPU nobody has tried yet.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
