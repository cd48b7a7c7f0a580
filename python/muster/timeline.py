"""Records when each tensor was agreed on and reduced, for Perfetto or chrome://tracing: `start_timeline`, `stop_timeline`."""

from __future__ import annotations

import os

from muster import world

_recording = False


def begin_asked() -> None:
    """Begins the recording that HOROVOD_TIMELINE=FILE asks for ("DYNAMIC": none yet), with HOROVOD_TIMELINE_MARK_CYCLES=1 of cycles too."""
    file = os.environ.get("HOROVOD_TIMELINE", "")
    if file and file != "DYNAMIC" and "MUSTER_TIMELINE" not in os.environ:
        start_timeline(file, os.environ.get("HOROVOD_TIMELINE_MARK_CYCLES", "") == "1")


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Begins to record into a file of rank 0; the other ranks record nothing. A recording under way is ended first.

    Not collective. For the timelines of all ranks set MUSTER_TIMELINE=FOLDER.

    Args:
        file_path: a file to write; its folder has to be there.
        mark_cycles: whether each round of agreement is marked too.

    Raises:
        ValueError: before `init`.
        CollectiveError: the file cannot be written.
    """
    global _recording
    comm = world.comm()
    if world.rank() != 0:
        return
    comm.timeline_start(str(file_path), bool(mark_cycles))
    _recording = True


def stop_timeline() -> None:
    """Ends the recording; the file is whole when this returns. Does nothing without one."""
    global _recording
    comm = world.comm()
    if _recording:
        _recording = False
        comm.timeline_stop()
