"""Runs the functions test_* of a test program on every rank, one after the other, and says which failed."""

import os
import sys
import traceback


def skip(why):
    """Ends the program as skipped. Every rank must come to the same conclusion."""
    print("skipped:", why)
    raise SystemExit(77)


def raises(kind, call, *parts):
    """The exception of this kind that `call()` raises; its text holds all parts."""
    try:
        call()
    except kind as error:
        for part in parts:
            assert part in str(error), f"{str(error)!r} does not hold {part!r}"
        return error
    raise AssertionError(f"nothing was raised; expected {kind.__name__}")


def run(names):
    """Calls what is named test_* in `names`; the program's exit code is 1 if any failed. A rank that fails ends at once, so that the others are told."""
    for name, function in list(names.items()):
        if not name.startswith("test_") or (len(sys.argv) > 1 and sys.argv[1] not in name):
            continue
        try:
            function()
        except BaseException:
            traceback.print_exc()
            print(f"FAILED: {name}", file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
