"""Serves the package `horovod` by muster, for programs written for Horovod 0.28: `muster run --as-horovod` and `horovodrun` put it on PYTHONPATH.

Nothing of Horovod is in it. What muster does not have raises ModuleNotFoundError or AttributeError, as a Horovod built without it does.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Optional

if importlib.util.find_spec("muster") is None:  # of a program that muster run has not started: in an installed tree they lie side by side
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python"))

_SERVED = {  # and the modules below each
    "horovod.torch": "muster.torch",
    "horovod.tensorflow": "muster.tensorflow",
    "horovod.keras": "muster.keras",
    "horovod.common.elastic": "muster.elastic",
    "horovod.common.process_sets": "muster.process_sets",
}


def _served_by(name: str) -> Optional[str]:
    """The module of muster that `name` stands for, whether or not there is one; None for the modules of this package."""
    for prefix, module in _SERVED.items():
        if name == prefix or name.startswith(prefix + "."):
            return module + name[len(prefix) :]
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes muster's own module stand under the name of Horovod's, so that both names lead to the same objects."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        module = _served_by(name)
        if module is None or importlib.util.find_spec(module) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None  # a passing one: the import would write its spec into muster's

    def exec_module(self, module: Any) -> None:
        sys.modules[module.__name__] = importlib.import_module(_served_by(module.__name__) or "")


sys.meta_path.insert(0, _Finder())  # first: `horovod.torch` has the path of `muster.torch`, where others would find its modules once more

from horovod.runner import run  # noqa: E402

__version__ = "0.28.1"  # the release whose interface this is; some programs ask

__all__ = ["run"]
