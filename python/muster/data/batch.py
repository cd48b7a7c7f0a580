"""The batches that a loader delivers, over the buffers that it has."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ._arrays import Element, memory_at, to_array


class Batch(tuple):
    """`images, labels = batch`; `(images,)` where the file has no labels.

    Attributes:
        count: samples of this rank; may be 0 in the last step of an epoch, where other ranks still have samples.
        global_count: samples of this step over all ranks: what an average over the step divides by.
        resume_at: samples of the epoch that all ranks have had after this step.
        samples: which samples of the dataset these are, a list of numbers.
    """

    count: int  # type: ignore[assignment]  # tuple has a method of this name
    global_count: int
    resume_at: int
    _numbers: bytes

    @property
    def images(self) -> Any:
        return self[0]

    @property
    def labels(self) -> Any:
        return self[1] if len(self) > 1 else None

    @property
    def samples(self) -> List[int]:
        return memoryview(self._numbers).cast("Q").tolist()


class Views:
    """Arrays over the native loader's buffers, of which it has a few: each is wrapped once and then cut to the batch."""

    def __init__(self, kind: str, element: Element, shape: Sequence[int], batch: int, owner: object) -> None:
        self._kind, self._element, self._shape, self._batch, self._owner = kind, element, tuple(shape), batch, owner
        self._bytes = batch * element.size
        for size in shape:
            self._bytes *= size
        self._whole: Dict[int, Any] = {}

    def at(self, address: int, count: int) -> Any:
        if count == 0 or address == 0:
            return to_array(self._kind, bytearray(), self._element, (0, *self._shape))
        if self._kind == "buffer":  # a memoryview of several dimensions cannot be cut
            memory = memory_at(address, self._bytes // self._batch * count, self._owner)
            return to_array("buffer", memory, self._element, (count, *self._shape))
        whole = self._whole.get(address)
        if whole is None:
            memory = memory_at(address, self._bytes, self._owner)
            whole = self._whole[address] = to_array(self._kind, memory, self._element, (self._batch, *self._shape))
        # A tensor of its own, on which what is set stays; for a whole batch made by the call that takes torch the least time.
        return whole.detach() if count == self._batch and self._kind == "torch" else whole[:count]
