"""Pickles objects that go to other ranks."""

from __future__ import annotations

import pickle
from typing import Any


def dumps(obj: Any) -> bytes:
    """The object, pickled: by cloudpickle, which takes functions and classes of the main script too, where that is installed."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(obj)
    return cloudpickle.dumps(obj)
