"""Finds out whether torch loses the Python half of a Work that a process group in Python hands to C++, as DistributedDataParallel is."""

from __future__ import annotations

import functools
from datetime import timedelta

import torch
import torch.distributed as dist


class _Ended(dist._Work):
    def wait(self, timeout=None) -> bool:
        return True


class _Group(dist.ProcessGroup):
    def __init__(self) -> None:
        try:
            super().__init__(dist.HashStore(), 0, 1)
        except TypeError:  # torch 1.13
            super().__init__(0, 1)

    def allreduce(self, tensors, options=None):
        return _Ended()


@functools.lru_cache(maxsize=None)
def loses_works() -> bool:
    """True where what C++ is handed is not waited for by the `wait` in Python once nobody in Python holds the object: it then waits for ever.

    Which torch does so is tried, since it does not go by version: some hold such an object (1.13 and 2.6 do not), and distributions build their own.
    """
    try:
        handed = dist.ProcessGroup.allreduce(_Group(), [torch.zeros(1)], dist.AllreduceOptions())
        return not handed.wait(timedelta(milliseconds=1))
    except Exception:  # noqa: BLE001  torch's own wait has no end to tell of, and says that time is out; any other fault: keeping them does no harm
        return True
