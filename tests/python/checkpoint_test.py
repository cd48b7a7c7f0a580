# muster.checkpoint: a checkpoint is there whole or not at all, is checked when it is read, and so many are kept.
# ranks: 1
import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from unittest import mock

import check
from muster.checkpoint import SAVED, Checkpoint, CheckpointError, exit_saved


def folder():
    return tempfile.TemporaryDirectory(prefix="muster-checkpoint.")


def raises(kind, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} is not raised")


def load(checkpoint):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        return checkpoint.load(), said.getvalue()


def test_what_is_saved_is_loaded():
    with folder() as where:
        checkpoint = Checkpoint(os.path.join(where, "made", "here"))
        assert checkpoint.load() is None and checkpoint.steps() == []
        assert checkpoint.save(0, {"a": 1}) == checkpoint.path(0)
        assert checkpoint.load() == (0, {"a": 1})
        checkpoint.save(5, [b"x" * 1000])
        assert Checkpoint(os.path.join(where, "made", "here")).load() == (5, [b"x" * 1000])
        checkpoint.save(5, "again")
        assert checkpoint.load() == (5, "again")
        assert sorted(os.listdir(checkpoint.folder)) == [os.path.basename(checkpoint.path(step)) for step in (0, 5)]


def test_the_newest_are_kept():
    with folder() as where:
        checkpoint = Checkpoint(where, keep=3)
        for step in (1, 2, 10, 100, 9):  # with 9 the training has gone back: 10 and 100 are no more
            checkpoint.save(step, step)
        assert checkpoint.steps() == [9, 2] and checkpoint.load() == (9, 9)
        alone = Checkpoint(where, keep=1)
        alone.save(10**13, "far")
        assert alone.steps() == [10**13]
        assert "give 1 or more" in raises(ValueError, Checkpoint, where, keep=0)
        assert "give 0 or more" in raises(ValueError, alone.save, -1, None)


def damage(path, how):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    with open(path, "wb") as file:
        file.write(how(data))


def flipped(data):
    data[-3] ^= 1
    return data


def test_a_damaged_one_is_passed_over():
    faults = {
        "checksum": flipped,
        "of": lambda data: data[:-1],
        "it has": lambda data: data + b"x",
        "cut off": lambda data: data[:20],
        "no checkpoint": lambda data: b"",
        "or cut off": lambda data: pickle.dumps("another program's") * 9,
        "it holds step": lambda data: data[:14] + b"\7" + data[15:],
    }
    for words, how in faults.items():
        with folder() as where:
            checkpoint = Checkpoint(where)
            checkpoint.save(1, "old")
            damage(checkpoint.save(2, "new"), how)
            found, said = load(checkpoint)
            assert found == (1, "old") and words in said and checkpoint.path(2) in said, (words, found, said)
            damage(checkpoint.path(1), how)
            with contextlib.redirect_stderr(io.StringIO()):
                assert "no whole checkpoint" in raises(CheckpointError, checkpoint.load)
            checkpoint.save(3, "goes on")
            assert checkpoint.load() == (3, "goes on")


def test_what_cannot_be_written_changes_nothing():
    with folder() as where:
        checkpoint = Checkpoint(where)
        checkpoint.save(1, "old")
        raises(TypeError, checkpoint.save, 2, (i for i in "no state"))
        for function in ("os.fsync", "os.replace"):
            with mock.patch(function, side_effect=OSError(28, "No space left on device")):
                assert "No space left" in raises(OSError, checkpoint.save, 2, "new")
            assert os.listdir(where) == [os.path.basename(checkpoint.path(1))]
        assert checkpoint.load() == (1, "old")


PROGRAM = """
import sys
from muster.checkpoint import Checkpoint
checkpoint = Checkpoint(sys.argv[1])
for step in range(1, 10**9):
    checkpoint.save(step, [step] * 20000)
    if step == 3:
        print("saves", flush=True)
"""


def test_whoever_is_killed_leaves_a_whole_one():
    for trial in range(5):
        with folder() as where, subprocess.Popen([sys.executable, "-c", PROGRAM, where], stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            while not any(name.endswith(".new") for name in os.listdir(where)):
                pass
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            step, state = Checkpoint(where).load()
            assert state == [step] * 20000 and step >= 3
            for name in os.listdir(where):
                os.utime(os.path.join(where, name), (0, 0))
            Checkpoint(where).save(step + 1, None)
            assert all(name.endswith(".ckpt") for name in os.listdir(where)), "what was begun an hour ago is removed"


def test_the_first_save_of_a_process_is_told():
    for variables, told in (({"MUSTER_LIFE": "0"}, "muster-checkpoint: 3\n"), ({}, "")):
        without = {name: value for name, value in os.environ.items() if name != "MUSTER_LIFE"}
        with folder() as where, contextlib.redirect_stderr(io.StringIO()) as said:
            with mock.patch.dict(os.environ, {**without, **variables}, clear=True), mock.patch("muster.checkpoint._told", False):
                Checkpoint(where).save(3, None)
                Checkpoint(where).save(4, None)
        assert said.getvalue() == told, said.getvalue()


def test_exit_saved():
    try:
        exit_saved()
    except SystemExit as end:
        assert end.code == SAVED == 75


check.run(globals())
