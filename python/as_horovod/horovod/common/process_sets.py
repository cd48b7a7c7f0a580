"""Serves `horovod.common.process_sets` by `muster.process_sets`."""

from muster.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set

__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]
