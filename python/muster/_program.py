"""Becomes one of the programs that were installed by pip, within this package."""

import os
import sys

_WITHOUT = {
    "muster-stage": "this wheel was built without MPI and parallel HDF5, which muster-stage needs",
    "muster-bench": "this wheel holds no benchmarks",
}


def _become(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_installed", "bin", name)
    if os.access(program, os.X_OK):
        os.execv(program, [program, *sys.argv[1:]])
    if name in _WITHOUT and os.access(os.path.join(os.path.dirname(program), "muster"), os.X_OK):
        sys.exit(f"{name}: error: {program} is not there: {_WITHOUT[name]}; build muster on this system: docs/install.md")
    sys.exit(f"{name}: error: {program} is not there; this package was not installed by pip: use the program of the build or installation that it belongs to")


def main():
    _become("muster")


def bench():
    _become("muster-bench")


def stage():
    _become("muster-stage")
