"""Keeps the requests that are under way, under the numbers that users hold: `poll`, `synchronize`.

Any thread may call any of it. A request that nobody waits for still ends, and keeps its tensors until then.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Optional, Tuple

import _muster_native as native

#: Of each number: the request (None: there was nothing to do), its output, and what makes the result of both.
_open: Dict[int, Tuple[Optional[native.Handle], Any, Optional[Callable[[Any, Any], Any]]]] = {}
_next = itertools.count()


def add(request: Optional[native.Handle], output: Any, finish: Optional[Callable[[Any, Any], Any]] = None) -> int:
    """A number for the request. `synchronize` returns finish(request, output), or the output if there is no `finish`."""
    number = next(_next)
    _open[number] = (request, output, finish)
    return number


def poll(handle: int) -> bool:
    """Returns whether the request has ended, well or not, so that `synchronize` will not block. ValueError if it was waited for already."""
    if handle not in _open:
        raise ValueError(f"the handle {handle} was never given, or was waited for already")
    request = _open[handle][0]
    return request is None or request.poll()


def synchronize(handle: int) -> Any:
    """Waits for the request. Its output: a tensor, or a list of tensors of a group. None if it was waited for already.

    Raises:
        CollectiveError: ranks have died, hang or disagree; on every rank.
    """
    if handle not in _open:
        return None
    request, output, finish = _open[handle]
    try:
        if request is not None:
            request.wait()
    finally:
        if request is None or request.poll():  # else Ctrl-C: the request goes on
            _open.pop(handle, None)
    return output if finish is None else finish(request, output)
