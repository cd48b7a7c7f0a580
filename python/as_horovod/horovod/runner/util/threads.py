"""Runs functions in threads: `in_thread`, `on_event`, `execute_function_multithreaded`."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence


def _swallowing(target: Callable[..., Any]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        try:
            target(*args)
        except BaseException:  # noqa: BLE001  asked for
            pass

    return call


def in_thread(target: Callable[..., Any], args: Sequence[Any] = (), name: Optional[str] = None, daemon: bool = True, silent: bool = False) -> threading.Thread:
    """Starts a thread that calls target(*args), and returns it. With `silent` what the target raises is dropped.

    Raises:
        ValueError: `args` is not a tuple.
    """
    if not isinstance(args, tuple):
        raise ValueError(f"args is {args!r}; give a tuple, such as (1,)")
    thread = threading.Thread(target=_swallowing(target) if silent else target, args=args, name=name, daemon=daemon)
    thread.start()
    return thread


def on_event(
    event: threading.Event,
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    stop: Optional[threading.Event] = None,
    check_stop_interval_s: float = 1.0,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts a thread that calls func(*args) once `event` is set, and ends without that when `stop` is set before. Returns the thread.

    Raises:
        ValueError: an event is missing, `args` is not a tuple, or the thread would keep the program alive for ever (no `stop` and no daemon).
    """
    if event is None:
        raise ValueError("the event is missing; give a threading.Event")
    if stop is None and not daemon:
        raise ValueError("a thread that is no daemon needs an event to stop it: give stop=threading.Event()")

    def wait_and_call() -> None:
        while not event.wait(None if stop is None else check_stop_interval_s):
            if stop is not None and stop.is_set():
                return
        if stop is None or not stop.is_set():
            func(*args)

    if not isinstance(args, tuple):
        raise ValueError(f"args is {args!r}; give a tuple, such as (1,)")
    return in_thread(wait_and_call, daemon=daemon, silent=silent)


def execute_function_multithreaded(
    fn: Callable[..., Any], args_list: Sequence[Sequence[Any]], block_until_all_done: bool = True, max_concurrent_executions: int = 1000
) -> Optional[Dict[int, Any]]:
    """Calls fn(*args) for each args of the list, in so many threads at most.

    Args:
        block_until_all_done: False: returns None at once.

    Returns:
        {index of the args: what fn returned}.

    Raises:
        RuntimeError: fn has raised for some of them.
    """
    todo: "queue.SimpleQueue[int]" = queue.SimpleQueue()
    results: Dict[int, Any] = {}
    for index in range(len(args_list)):
        todo.put(index)

    def work() -> None:
        while True:
            try:
                index = todo.get_nowait()
            except queue.Empty:
                return
            results[index] = fn(*args_list[index])

    threads: List[threading.Thread] = [in_thread(work) for _ in range(min(max_concurrent_executions, len(args_list)))]
    if not block_until_all_done:
        return None
    for thread in threads:
        thread.join()
    if len(results) != len(args_list):
        raise RuntimeError(f"{len(args_list) - len(results)} of {len(args_list)} calls of {getattr(fn, '__name__', fn)} failed; what their threads printed tells why")
    return results
