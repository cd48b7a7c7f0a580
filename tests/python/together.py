"""Runs test programs in this process, one after the other, each in a world of its own; what they import is imported once. Its exit code is 77 if all were skipped."""

import os
import runpy
import sys


def end_world():
    """What the program has begun; the next one begins anew."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
    if "muster" in sys.modules:
        sys.modules["muster"].shutdown()


programs, skipped = sys.argv[1:], 0
for program in programs:
    sys.argv = [program]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code != 77:
            raise
        skipped += 1
    end_world()
# Not sys.exit: a thread of gloo that calls into Python while the interpreter ends aborts the process (torch 1.13).
sys.stdout.flush()
sys.stderr.flush()
os._exit(77 if skipped == len(programs) else 0)
