"""Calls a function that `horovod.run` has pickled, in one rank, and leaves its result for it: `python3 -m horovod.runner.call_function FOLDER`."""

from __future__ import annotations

import os
import pickle
import runpy
import sys
import types

from horovod.runner import NOT_FOUND


def _load_main(path: str) -> None:
    """Loads the calling program under another name than "__main__", so that it does not run, and lets it stand for "__main__" in the pickle."""
    main = types.ModuleType("__mp_main__")
    main.__dict__.update(runpy.run_path(path, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main


def main(folder: str) -> None:
    with open(os.path.join(folder, "paths"), "rb") as file:
        paths, program = pickle.load(file)
    sys.path += [path for path in paths if path not in sys.path]
    if program:
        _load_main(program)
    with open(os.path.join(folder, "call"), "rb") as file:
        try:
            func, args, kwargs = pickle.load(file)
        except AttributeError as fault:
            raise SystemExit(f"horovod.run: {fault}: {NOT_FOUND}")
    result = func(*args, **kwargs)
    name = os.path.join(folder, f"result.{os.environ['MUSTER_RANK']}")
    with open(name + ".part", "wb") as file:
        try:
            import cloudpickle as pickler
        except ImportError:
            pickler = pickle
        pickler.dump(result, file)
    os.rename(name + ".part", name)


if __name__ == "__main__":
    main(sys.argv[1])
