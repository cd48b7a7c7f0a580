"""Serves the package `horovod` by muster, for programs written for Horovod 0.28: `muster run --as-horovod` and `horovodrun` put it on PYTHONPATH.

Nothing of Horovod is in it. What muster does not have raises ModuleNotFoundError or AttributeError, as a Horovod built without it does.
"""

from horovod.runner import run

__version__ = "0.28.1"  # the release whose interface this is; some programs ask

__all__ = ["run"]
