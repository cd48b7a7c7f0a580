"""Keeps what a rank commits in memory that outlives its process: `keep`, `load`. For `State` objects; needs no framework.

With `muster run --keep-state node` the node holds the memory to the end of the run, so that ranks which are started again find their latest two commits; with
`node,neighbour` the next node has a copy as well, for ranks whose node is lost.
"""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import struct
from typing import Any, Callable, List, NamedTuple, Sequence, Tuple

import _muster_native as native
from muster import world
from muster.errors import CollectiveError

MOST = 4  # copies that may be there
_LINE = 64  # each piece is filled up to a multiple of it


def is_held() -> bool:
    """Returns whether the run keeps what ranks commit: the same on all of them, also where a node's keeper is lost."""
    return bool(os.environ.get("MUSTER_KEPT_STATE"))


def buffer_at(address: int, size: int, owner: Any) -> pickle.PickleBuffer:
    """The memory there, which `owner` holds, for a reducer: copied as it is."""
    memory = (ctypes.c_char * size).from_address(address)
    memory.owner = owner
    return pickle.PickleBuffer(memory)


def _place_of(view: memoryview) -> Tuple[int, int]:
    return (ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0, view.nbytes)


def _writable(buffer: pickle.PickleBuffer) -> memoryview:
    view = buffer.raw()  # ctypes takes no other
    return memoryview(bytearray(view)) if view.readonly else view


def keep(step: int, value: Any, reduce: Callable[[Any], Any] = lambda value: NotImplemented) -> None:
    """Copies a value over the oldest of the copies that are kept.

    Args:
        step: its number; later ones are larger.
        value: what pickle takes. Arrays of NumPy are copied as they are.
        reduce: as Pickler.reducer_override, for what else holds large memory (`buffer_at`).

    Raises RuntimeError where there is no room for it.
    """
    buffers: List[memoryview] = []

    class Pickler(pickle.Pickler):
        def reducer_override(self, one: Any) -> Any:
            return reduce(one)

    text = io.BytesIO()
    Pickler(text, protocol=5, buffer_callback=lambda buffer: buffers.append(_writable(buffer))).dump(value)
    skeleton = bytearray(text.getvalue())
    sizes = [len(skeleton), *(view.nbytes for view in buffers)]
    head = bytearray(struct.pack(f"<{len(sizes) + 1}Q", len(sizes), *sizes))
    pieces = [memoryview(head), memoryview(skeleton), *buffers]
    try:
        native.keep_state(step, [_place_of(view) for view in pieces])
    except CollectiveError as error:  # no other rank is at fault, and a world made again would end the same way
        raise RuntimeError(error.reason) from None


def _pieces_of(address: int, size: int) -> List[memoryview]:
    everything = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
    (count,) = struct.unpack_from("<Q", everything)
    sizes = struct.unpack_from(f"<{count}Q", everything, 8)
    pieces: List[memoryview] = []
    at = -(-8 * (count + 1) // _LINE) * _LINE
    for size in sizes:
        pieces.append(everything[at : at + size])
        at += -(-size // _LINE) * _LINE
    return pieces


def steps() -> List[int]:
    """The numbers of the whole copies, the newest first."""
    numbers: List[int] = []
    for which in range(MOST):
        found = native.kept_state(which)
        if found is None:
            break
        numbers.append(found[0])
    return numbers


class Beginning(NamedTuple):
    """The commit with which ranks begin: the newest that all find, or else the newest that one finds.

    step: its number; 0: there is none.
    is_common: all find it.
    root: the first rank that does.
    next: the number of the first commit after it.
    """

    step: int
    is_common: bool
    root: int
    next: int


def choose(numbers: Sequence[int], name: str) -> Beginning:
    """Decides by the numbers of the commits that each rank finds, equally many of each, with 0 for none. Collective."""
    theirs = [number for each in world.gather_numbers(numbers, name) for number in each]
    step, is_common, root, following = native.choose_commit(theirs, len(numbers))
    return Beginning(step, bool(is_common), root, following)


def choose_of_found() -> Beginning:
    """The same of what ranks find whole. Collective."""
    return choose((steps() + [0] * MOST)[:MOST], "muster.kept")


def newest_common() -> int:
    """The newest commit that all ranks find whole, or 0. Collective."""
    begin = choose_of_found()
    return begin.step if begin.is_common else 0


def load(step: int) -> Any:
    """Returns what was kept with that number. Its memory is a copy. Raises KeyError where there is no whole one."""
    for which in range(MOST):  # each look at one reads all copies
        found = native.kept_state(which)
        if found is None:
            break
        if found[0] == step:
            pieces = _pieces_of(*found[1:])
            return pickle.loads(pieces[0], buffers=[bytearray(piece) for piece in pieces[1:]])
    raise KeyError(f"no whole copy of commit {step} is kept")
