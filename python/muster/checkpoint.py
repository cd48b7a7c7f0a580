"""Keeps checkpoints in a folder, whole or not at all: `Checkpoint`. Needs no framework and no other rank."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import struct
import sys
from typing import Any, Callable, Iterator, List, NoReturn, Optional, Tuple

SAVED = 75  #: the exit code that says "saved, start me again": the default of `muster run --saved-code`

_MAGIC = b"muster.ckpt/1\n"
_HEADER = struct.Struct("<QQ32s")  # step, bytes that follow, their SHA-256
_told = False  # whether this process has told `muster run` of a checkpoint
_NAME = re.compile(r"step-(\d{12,})\.ckpt")


class CheckpointError(RuntimeError):
    """There are checkpoints, and none of them is whole."""


def exit_saved() -> NoReturn:
    """Ends this process with the code `SAVED`. Call it on all ranks, once rank 0's checkpoint is written. Runs what is to run at exit."""
    sys.exit(SAVED)


class Checkpoint:
    """The checkpoints of a training in its folder.

    A file is written under another name, synced to disk, and renamed: a reader finds it whole or not at all. It has a checksum, so that one that was damaged
    later is passed over. The newest `keep` stay. Let one rank save and load, and broadcast what it has loaded; several processes that save at once leave
    one of their files of each step, which is whole. Not for several threads at once.

    Args:
        folder: made where it is missing; on a file system that the next job sees, too.
        keep: how many to keep, at least 1. With 2, a damaged newest one leaves another.
        dumps: bytes of a state; pickle's by default, which takes what torch's state_dict() returns.
        loads: a state of these bytes. pickle runs code that a file names: the folder must be writable by people you trust only.
    """

    def __init__(
        self, folder: "os.PathLike[str] | str", keep: int = 2, *, dumps: Callable[[Any], bytes] = pickle.dumps, loads: Callable[[bytes], Any] = pickle.loads
    ) -> None:
        if keep < 1:
            raise ValueError(f"keep is {keep}; give 1 or more")
        self.folder, self.keep = os.fspath(folder), keep
        self._dumps, self._loads = dumps, loads

    def path(self, step: int) -> str:
        """The file of a step."""
        return os.path.join(self.folder, f"step-{step:012d}.ckpt")

    def steps(self) -> List[int]:
        """The steps that there are files of, newest first; whether they are whole only reading tells."""
        try:
            found = map(_NAME.fullmatch, os.listdir(self.folder))
        except FileNotFoundError:
            return []
        return sorted((int(match.group(1)) for match in found if match), reverse=True)

    def save(self, step: int, state: Any) -> str:
        """Writes the state of a step, in place of one of the same step, and removes those beyond `keep`. Returns the file's path.

        Under `muster run` the first call in a process writes `muster-checkpoint: STEP` to standard error: a later step than that of the start before is progress.

        Raises:
            OSError: the disk is full, for instance; the checkpoints that were there are as before.
            ValueError: a step below 0.
        """
        if step < 0:
            raise ValueError(f"step is {step}; give 0 or more")
        data = self._dumps(state)
        os.makedirs(self.folder, exist_ok=True)
        path = self.path(step)
        written = f"{path}.{os.getpid()}.new"
        try:
            with open(written, "wb") as file:
                file.write(_MAGIC + _HEADER.pack(step, len(data), hashlib.sha256(data).digest()))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(written, path)
        except BaseException:
            _remove(written)
            raise
        self._sync_folder()
        self._remove_old(step)
        _tell(step)
        return path

    def load(self) -> Optional[Tuple[int, Any]]:
        """(step, state) of the newest whole checkpoint, or None. Says on standard error which damaged ones it passed over.

        Raises:
            CheckpointError: there are files, and each is damaged. To begin anew is for you to decide.
            Exception: what `loads` raises.
        """
        faults = []
        for step in self.steps():
            try:
                data = _read(self.path(step), step)
            except (OSError, ValueError) as fault:
                faults.append(f"{self.path(step)}: {fault}")
                print(f"muster: warning: checkpoint passed over: {faults[-1]}", file=sys.stderr, flush=True)
                continue
            return step, self._loads(data)
        if faults:
            raise CheckpointError(f"no whole checkpoint in {self.folder}: {'; '.join(faults)}; restore one, or remove the folder to begin anew")
        return None

    def _sync_folder(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError:  # some file systems cannot
            pass
        finally:
            os.close(folder)

    def _remove_old(self, saved: int) -> None:
        """Removes old checkpoints. Those after `saved` belong to a training that went back to an earlier step: they would be taken for the newest."""
        steps = self.steps()
        older = [step for step in steps if step <= saved]
        for step in [*(step for step in steps if step > saved), *older[self.keep :]]:
            _remove(self.path(step))
        for name in self._unfinished():
            _remove(os.path.join(self.folder, name))

    def _unfinished(self) -> Iterator[str]:
        """Files that processes which are gone have begun to write. On another host they cannot be asked: an hour is enough for any."""
        for name in os.listdir(self.folder):
            begun = re.fullmatch(r"step-\d{12,}\.ckpt\.(\d+)\.new", name)
            if begun and int(begun.group(1)) != os.getpid() and _age_s(os.path.join(self.folder, name)) > 3600:
                yield name


def _tell(step: int) -> None:
    global _told
    if not _told and "MUSTER_LIFE" in os.environ:
        _told = True
        print(f"muster-checkpoint: {step}", file=sys.stderr, flush=True)


def _read(path: str, step: int) -> bytes:
    with open(path, "rb") as file:
        head = file.read(len(_MAGIC) + _HEADER.size)
        if len(head) < len(_MAGIC) + _HEADER.size or not head.startswith(_MAGIC):
            raise ValueError("no checkpoint of muster.checkpoint, or cut off")
        known, size, digest = _HEADER.unpack(head[len(_MAGIC) :])
        data = file.read()
    if known != step:
        raise ValueError(f"it holds step {known}")
    if len(data) != size:
        raise ValueError(f"it has {len(data)} of {size} bytes")
    if hashlib.sha256(data).digest() != digest:
        raise ValueError("its checksum is wrong")
    return data


def _age_s(path: str) -> float:
    import time

    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
