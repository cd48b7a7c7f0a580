"""Waits for requests: the Work objects that collectives return, and the thread that completes their futures."""

from __future__ import annotations

import os
import queue
import threading
import time
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

import torch
import torch.distributed as dist
from muster._torch_types import write

_NO_TIMEOUT = timedelta(0)


class Work(dist._Work):
    """A collective that was begun. Any thread may wait for it.

    What is left to do when its requests have ended (copying a result to where it belongs) is done by the first thread that waits, or by the one thread of this
    process that completes futures.
    """

    def __init__(self, group, what: str, requests: Sequence[Any], result: List[torch.Tensor], finish: Optional[Callable[[], None]], options: Any) -> None:
        super().__init__()
        self._group = group
        self._communicator = getattr(group, "_communicator", None)  # the group may be given another meanwhile
        self._what = what
        self._requests = requests
        self._result = result
        self._finish = finish
        self._options = options
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._done = False
        self._error: Optional[BaseException] = None
        self._future: Optional[torch.futures.Future] = None
        self._source = -1

    def _seconds(self, timeout: Optional[timedelta]) -> float:
        """Returns how long it may take from now on. Its timeout counts from now, the group's from the beginning of the collective."""
        if timeout is not None and timeout > _NO_TIMEOUT:
            return timeout.total_seconds()
        given = getattr(self._options, "timeout", None)
        whole = given.total_seconds() if given is not None and given > _NO_TIMEOUT else self._group._timeout
        return max(0.0, self._begun + whole - time.monotonic())

    def _end(self, timeout: Optional[timedelta]) -> None:
        """Returns when it has ended, well or not."""
        if self._done:
            return
        with self._lock:
            if self._done:
                return
            group = self._group
            try:
                for request in self._requests:
                    if not request.poll() and not request.wait_for(self._seconds(timeout)):
                        request.wait(0.001)  # its deadline is now: says which ranks are missing
                    request.wait()
                if self._finish is not None:
                    write(self._result, self._finish)
            except Exception as error:  # Ctrl-C leaves it as it is
                self._error = group._explain(error, self._communicator)
            self._done = True
            self._finish = None
            self._requests, self._communicator = (), None

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Blocks until it has ended; True. Raises CollectiveError, which names the ranks at fault, if it has failed or has not ended in time."""
        self._end(timeout)
        self._forget()
        if self._error is not None:
            raise self._error
        return True

    def _forget(self) -> None:
        """Drops the group: work that has ended keeps none, so that a group ends with its last user."""
        group, self._group = self._group, None
        if group is not None:
            group._forget(self)

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        """Returns whether `wait` will not block."""
        return self._done or all(request.poll() for request in self._requests)

    def is_success(self) -> bool:
        if not self.is_completed():
            return False
        self._end(None)
        return self._error is None

    def exception(self):
        return self._error

    def result(self) -> List[torch.Tensor]:
        """The tensors that hold the result, after `wait`."""
        return self._result

    def source_rank(self) -> int:
        """Returns who sent the message."""
        return self._source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """Completed by another thread when the collective has ended; its value is the list of the tensors."""
        if self._future is None:
            self._begin_future()
        return self._future

    def _begin_future(self) -> None:
        first = torch.futures.Future()
        # Only what a callback raises becomes an error for C++, which DistributedDataParallel is: a value set by set_exception would be taken for a result.
        self._future = first.then(self._value_of_future)
        self._first = first
        if _waiter.is_this_thread():  # a callback that begins a collective of its own may wait for it: nobody else would complete it
            self._end(None)
        if self._done:
            self._complete()
        else:
            _waiter.add(self)

    def _value_of_future(self, _first: torch.futures.Future) -> List[torch.Tensor]:
        if self._error is not None:
            raise self._error.with_traceback(None)
        return self._result

    def _complete(self) -> None:
        """Completes the future; once."""
        self._forget()
        first, self._first = self._first, None
        first.set_result(None)


class Ended(Work):
    """A collective that had nothing to do."""

    def __init__(self, group, result: List[torch.Tensor]) -> None:
        super().__init__(None, "nothing", (), result, None, None)
        self._done = True


class _Waiter:
    """One thread a process, started by the first future, which waits for requests in the order in which they were begun."""

    def __init__(self) -> None:
        self._works: "queue.SimpleQueue[Optional[Work]]" = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._lock = threading.Lock()

    def is_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def add(self, work: Work) -> None:
        if self._thread is None:
            self._start()
        self._works.put(work)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="muster-futures", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            work = self._works.get()
            if work is None:
                return
            try:
                work._end(None)
                work._complete()
            except Exception:  # noqa: BLE001  a callback of the user's has failed; torch keeps its error in the future
                pass
            del work  # else the last one's tensors stay until the next comes

    def stop(self, seconds: float) -> None:
        """Lets the thread end after what it has; waits so long for it."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self._works.put(None)
            thread.join(seconds)


_waiter = _Waiter()


def _after_fork() -> None:
    global _waiter
    _waiter = _Waiter()



os.register_at_fork(after_in_child=_after_fork)
