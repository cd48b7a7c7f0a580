"""Names what can go wrong with a collective."""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, Optional, Tuple

import _muster_native as native


class CollectiveError(RuntimeError):
    """A collective failed: ranks have died, hang, disagree, or a library has failed.

    `horovod.common.exceptions.HorovodInternalError` is this class; `muster.torch.elastic.run` restores the state when it is raised.

    Attributes:
        ranks: the ranks at fault, as far as they are known; may be empty.
        hosts: their hosts, as far as the reason names them.
        tensor: the name of the tensor, or "".
        reason: what happened, in words; the text of this exception.
        code: `_muster_native.E_PEER` and its like.
    """

    def __init__(self, reason: str = "", code: int = native.E_INTERNAL, ranks: Tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.ranks = tuple(ranks)
        self.hosts = tuple(dict.fromkeys(re.findall(r"rank \d+(?: of \d+)? on ([^\s,:;)]+)", reason)))
        tensor = re.search(r'"([^"]*)"', reason)
        self.tensor = tensor.group(1) if tensor else ""

    def __reduce__(self):
        return type(self), (self.reason, self.code, self.ranks)


_last_held: Optional[CollectiveError] = None


def held(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function that a framework calls back. The framework replaces its exceptions by its own; `failure_in` then finds the CollectiveError."""

    @functools.wraps(function)
    def called(*values: Any) -> Any:
        global _last_held
        try:
            return function(*values)
        except CollectiveError as error:
            _last_held = error
            raise

    return called


def failure_in(error: BaseException) -> Optional[CollectiveError]:
    """The failure of a collective that `error` is, or that a framework has made it of; None of any other error. What a framework replaced is found once."""
    global _last_held
    if isinstance(error, CollectiveError):
        return error
    if _last_held is None or not _last_held.reason or _last_held.reason not in str(error):
        return None
    found, _last_held = _last_held, None
    return found


class MessageError(CollectiveError):
    """A message between two ranks failed."""


class HostsUpdatedInterrupt(Exception):
    """Raised by `State.commit()` when hosts were added or removed: what runs under `elastic.run` goes on with the new world.

    Attributes:
        skip_sync: whether the state need not be broadcast again, since hosts were only removed.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of this job have changed")
        self.skip_sync = skip_sync


_UNMET = re.compile(r"all ranks(?: of process set (\d+),[^,]*,)? wait, and none of these calls is on all of them(.*)", re.DOTALL)
_last_unmet = ""


def unmet_calls(reason: str) -> Tuple[int, str]:
    """Returns, for calls that never meet, which have all failed, (process set, what each rank waited in); (0, "") for any other reason."""
    found = _UNMET.search(reason)
    return (int(found.group(1) or 0), found.group(2)) if found else (0, "")


def _begin_names_anew(reason: str) -> None:
    """The ranks have called what has no name differently often."""
    global _last_unmet
    set, unmet = unmet_calls(reason)
    if ".noname." in unmet and unmet != _last_unmet:
        from muster import world

        _last_unmet = unmet
        world.forget_nameless(set)


def _of_code(reason: str, code: int, ranks: Tuple[int, ...]) -> Exception:
    """The exception for a code of muster_comm.h: ValueError for wrong arguments, else CollectiveError."""
    _begin_names_anew(reason)
    return ValueError(reason) if code == native.E_USAGE else CollectiveError(reason, code, ranks)


native.set_error_class(_of_code)
