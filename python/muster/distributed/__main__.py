"""Runs a script with the torch.distributed backend "muster" registered: `python3 -m muster.distributed train.py --backend muster`.

For torch before 2.5, which does not find backends by itself.
"""

from __future__ import annotations

import os
import runpy
import sys

from _muster_torch_backend import register


def main() -> None:
    module = sys.argv[1:2] == ["-m"]
    given = sys.argv[2:] if module else sys.argv[1:]
    if not given or given[0] in ("-h", "--help"):
        print("usage: python3 -m muster.distributed SCRIPT [arguments…]\n       python3 -m muster.distributed -m MODULE [arguments…]", file=sys.stderr)
        sys.exit(2 if not given else 0)
    register()
    sys.argv = given
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(given[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(given[0]))
        runpy.run_path(given[0], run_name="__main__")


if __name__ == "__main__":
    main()
