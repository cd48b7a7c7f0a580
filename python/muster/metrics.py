"""Tells what the collectives of this rank have done so far: `counters`."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Union

import _muster_native as native
from muster import world


def counters(format: Optional[str] = None) -> Union[Dict[str, Any], str]:
    """Returns what this rank has done since `init`: collectives and bytes by kind, tensors, errors, nanoseconds waited. Not collective; any thread may call it.

    Args:
        format: None: a dict of numbers; those by kind are dicts themselves. "prometheus": text that Prometheus reads, metrics muster_comm_*_total with the label rank.

    Raises:
        ValueError: before `init`, or another format.
    """
    comm = world.comm()
    if format is None:
        return json.loads(comm.counters(native.JSON))
    if format != "prometheus":
        raise ValueError(f'there is no format {format!r}; give "prometheus", or nothing for a dict')
    return comm.counters(native.PROMETHEUS)
