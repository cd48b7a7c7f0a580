"""Becomes the program `muster` that was installed by pip, within this package."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_installed", "bin", "muster")
    if not os.access(program, os.X_OK):
        sys.exit(f"muster: error: {program} is not there; this package was not installed by pip: use the program of the build or installation that it belongs to")
    os.execv(program, [program, *sys.argv[1:]])
