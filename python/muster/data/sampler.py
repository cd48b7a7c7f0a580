"""Tells a rank its samples of an epoch: shuffled, dealt out exactly, resumed anywhere with any number of ranks."""

from __future__ import annotations

import array
import sys
import warnings
import weakref
import zlib
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple, Union

from . import _library
from ._arrays import check_choice
from ._ranks import Place, this_place
from .errors import UsageError

_TAILS = ("exact", "pad", "drop")
_SPREADS = ("global", "sharded", "by_node")
_BLOCK = 4096  # samples asked for at once

Number = Union[int, Callable[[], int], None]


class Sampler:
    """The numbers of a rank's samples, in their order; a sampler for torch.utils.data.DataLoader.

    The order is a function of seed and epoch alone, the same on every machine and for every number of ranks; rank r of n takes positions r, r + n, … of it. One
    pass over the sampler is one epoch. A pass that goes to its end is followed by the next epoch; one that is broken off is begun again from where it began.

    Args:
        data: a Dataset, or a number of samples.
        rank, size: who this is, of how many; numbers, or functions that are asked before each pass (`rank=hvd.rank`). None: asked of muster, torch.distributed, or
            the variables MUSTER_RANK, MUSTER_WORLD_SIZE, RANK, WORLD_SIZE; alone 0 of 1.
        shuffle: False: in the order of the file.
        seed: of the shuffle; the same on all ranks.
        tail: "exact": every sample once, some ranks have one fewer; "pad": the first ones come a second time; "drop": the last ones are left out; then all ranks
            have as many, which DistributedDataParallel needs of a DataLoader.
        weights: a number for each sample: draws by weight; then `draws` samples an epoch over all ranks, with `replacement` or no sample twice.
        spread: "global": a rank draws from all samples; "sharded": from its own part of the file; "by_node": from its node's.
        window: (samples of a chunk, chunks): shuffles within windows of so many chunks, for sets larger than memory.

    Raises:
        UsageError (a ValueError): arguments that contradict each other.

    Not for several threads at once. Pickles, and may be used after a fork.
    """

    def __init__(
        self,
        data: Any,
        rank: Number = None,
        size: Number = None,
        shuffle: bool = True,
        seed: int = 0,
        tail: str = "exact",
        *,
        weights: Optional[Sequence[float]] = None,
        draws: Optional[int] = None,
        replacement: bool = True,
        spread: str = "global",
        window: Optional[Tuple[int, int]] = None,
    ) -> None:
        if (rank is None) != (size is None):
            raise UsageError("rank or size is given without the other; give both, or neither")
        if not 0 <= seed < 2**64:
            raise UsageError(f"seed is {seed}; give 0 to 2**64 - 1")
        self.samples = data if isinstance(data, int) else len(data)
        if self.samples < 0:
            raise UsageError(f"a sampler of {self.samples} samples; give 0 or more")
        self._rank, self._size = rank, size
        self.shuffle, self.seed = bool(shuffle), seed
        self.tail = check_choice("tail", tail, _TAILS)
        self.spread = check_choice("spread", spread, _SPREADS)
        self.window = (int(window[0]), int(window[1])) if window is not None else (0, 0)
        self._weights = [float(each) for each in weights] if weights is not None else None
        if self._weights is not None and len(self._weights) != self.samples:
            raise UsageError(f"{len(self._weights)} weights for {self.samples} samples; give one for each")
        if self._weights is None and (draws is not None or not replacement):
            raise UsageError("draws or replacement is given without weights; give weights, one for each sample")
        self._replacement = replacement
        self.length = self.samples if self._weights is None else self.samples if draws is None else draws
        self._native: Any = None
        self._epoch = 0
        self._base = 0  # samples of this epoch that all ranks have had before this pass
        self._passed = 0  # samples that this rank has had in this pass
        self._recorded: Optional[int] = None  # samples over all ranks, where record_batch() counts
        self._given_out = False  # this pass has given out all it had
        self._pass_count = 0  # which were so many
        self._pass = 0  # the number of the newest pass
        self._pass_size = 1
        self._asker: Any = None  # a weak reference to what asks on behalf of workers, or None
        self._warned = False
        self.native()  # says at once what is wrong

    # The native sampler.
    # ----------------------------------------------------------------------------------------------------------------

    def native(self) -> Any:
        """The library's sampler. Pure, without threads: a forked child may use that of its parent."""
        if self._native is None:
            weighted = {"weights": self._weights, "draws": self.length, "once": not self._replacement} if self._weights is not None else {}
            self._native = _library.library().sampler(
                self.samples,
                seed=self.seed,
                sequential=not self.shuffle,
                tail=_TAILS.index(self.tail),
                spread=_SPREADS.index(self.spread),
                window=self.window,
                **weighted,
            )
        return self._native

    def place(self) -> Place:
        """Returns which rank this is, asked anew."""
        if self._rank is None or self._size is None:
            return this_place()
        rank = self._rank() if callable(self._rank) else self._rank
        size = self._size() if callable(self._size) else self._size
        here = this_place()
        local = (here.local_rank, here.local_size) if (here.rank, here.size) == (rank, size) else (0, 1)
        place = Place(rank, size, *local)
        if not 0 <= place.rank < place.size:
            raise UsageError(f"rank {place.rank} of {place.size}: no such rank; give 0 <= rank < size")
        return place

    def _part(self, place: Place, epoch: int, start: int) -> _library.Part:
        return _library.Part(
            epoch=epoch,
            rank=place.rank,
            world=place.size,
            start=start,
            node_first=place.rank - place.local_rank,
            node_ranks=place.local_size,
        )

    def _count(self, part: _library.Part) -> int:
        return self.native().count(part)

    # One pass.
    # ----------------------------------------------------------------------------------------------------------------

    @property
    def _done(self) -> bool:
        """Returns whether the pass went to its end: what was given out early, and not recorded, has not."""
        return self._given_out and (self._recorded is None or self._recorded >= self._pass_count * self._pass_size)

    def next_pass(self) -> Tuple[int, int]:
        """(epoch, samples that all ranks have had of it before) of the pass that would begin now."""
        return (self._epoch + 1, 0) if self._done else (self._epoch, self._base)

    def begin_pass(self, size: int) -> int:
        """Begins a pass over `size` ranks; returns its number."""
        self._start_at(*self.next_pass())
        self._pass_size = size
        return self._pass

    def _start_at(self, epoch: int, taken: int) -> None:
        self._epoch, self._base = epoch, taken
        self._passed, self._recorded, self._given_out = 0, None, False
        self._pass += 1  # what still runs counts no more
        self._asker = None

    def note(self, taken: int) -> None:
        """Notes for the loader that all ranks together have had so many of the epoch."""
        self._recorded = taken - self._base

    def note_end(self) -> None:
        self._recorded, self._given_out = None, True

    def __iter__(self) -> Iterator[int]:
        place = self.place()
        number = self.begin_pass(place.size)
        part = self._part(place, self._epoch, self._base)
        self._pass_count = self._count(part)
        asker = _asker_for_workers()
        self._asker = weakref.ref(asker) if asker is not None else None
        return self._indices(number, part, self._pass_count)

    def _indices(self, number: int, part: _library.Part, count: int) -> Iterator[int]:
        for first in range(0, count, _BLOCK):
            block = self.native().fill(part, first, min(_BLOCK, count - first))
            for passed, index in enumerate(memoryview(block).cast("Q"), first + 1):
                if number == self._pass:
                    self._passed = passed
                yield index
        if number == self._pass:
            self._given_out = True

    def __len__(self) -> int:
        """Samples that this rank has in the pass that runs, or, where none does, in the next."""
        place = self.place()
        return self._count(self._part(place, *self.next_pass()))

    # Where it stands.
    # ----------------------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch that runs, or, before the first pass, comes."""
        return self._epoch

    @property
    def taken(self) -> int:
        """Samples that all ranks together have had of this epoch."""
        in_pass = self._passed * self._pass_size if self._recorded is None else self._recorded
        return self.length if self._done else min(self.length, self._base + in_pass)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass one over this epoch. The one that runs, or was loaded, keeps its place; one that went to its end begins again."""
        if epoch < 0:
            raise UsageError(f"epoch is {epoch}; give 0 or more")
        if epoch != self._epoch or self._done:
            self._start_at(epoch, 0)

    def record_batch(self, batch: int, batch_size: int) -> None:
        """Says that every rank has trained on a batch of so many samples. From the first call of a pass on these calls alone count for state_dict().

        Needed where samples are asked for long before they are trained on: in a DataLoader with workers. `batch` is its number and not used.
        """
        self._recorded = (self._recorded or 0) + batch_size * self._pass_size

    def reset(self) -> None:
        """Makes the next pass go on with what no rank has had, after the number of ranks has changed."""
        self._warn_if_ahead()
        if not self._done:
            self._start_at(self._epoch, self.taken)

    on_reset = reset

    def _is_ahead(self) -> bool:
        """Returns whether samples of this pass were given out that have not come out of the DataLoader, as far as that can be known."""
        if self._asker is None or self._recorded is not None:
            return False
        asker = self._asker()
        if asker is None:  # the loop was broken off, or has ended
            return not self._given_out
        return getattr(asker, "_send_idx", 0) > getattr(asker, "_rcvd_idx", 0)

    def _warn_if_ahead(self) -> None:
        if self._warned or not self._is_ahead():
            return
        self._warned = True
        warnings.warn(
            "muster.data.Sampler: a DataLoader's workers have asked for samples that nobody has trained on yet, and they count as had: a resume would miss them; "
            "call sampler.record_batch(i, len(batch)) after each step",
            stacklevel=3,
        )

    def _order(self) -> Dict[str, Any]:
        weights = None if self._weights is None else zlib.crc32(array.array("d", self._weights).tobytes())
        return {
            "samples": self.samples,
            "length": self.length,
            "shuffle": self.shuffle,
            "seed": self.seed,
            "spread": self.spread,
            "window": list(self.window),
            "weights": weights,
            "replacement": self._replacement,
        }

    def state_dict(self) -> Dict[str, Any]:
        """Returns where all ranks stand: plain values. Take rank 0's, in the same step on all ranks.

        Counts what this sampler has given out, or what record_batch() was told. Warns, once, where a DataLoader's workers have asked for samples that nobody has
        trained on yet, and record_batch() was told nothing.
        """
        self._warn_if_ahead()
        return {"epoch": self._epoch, "taken": self.taken, "order": self._order()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on from there, also with another number of ranks: of the rest of the epoch nothing comes twice and nothing is missed (spread="global").

        A state of an epoch's end leaves nothing of it: the first pass is empty, and the next epoch follows.

        Raises:
            UsageError: a state of another kind, or of a sampler with another order.
        """
        try:
            epoch, taken, order = int(state["epoch"]), int(state["taken"]), dict(state["order"])
        except (KeyError, TypeError, ValueError) as problem:
            raise UsageError(f"no state of a muster.data.Sampler or Loader ({problem!r}); give what state_dict() returned") from None
        mine = self._order()
        other = {name: value for name, value in order.items() if name not in mine or mine[name] != value}
        if other or len(order) != len(mine):
            told = ", ".join(f"{name} {value} (here {mine.get(name)})" for name, value in other.items())
            raise UsageError(f"the state is of a sampler with another order: {told}; make the sampler as it was made then")
        if epoch < 0 or not 0 <= taken <= self.length:
            raise UsageError(f"the state has epoch {epoch} and {taken} samples of {self.length}; give what state_dict() returned")
        self._start_at(epoch, taken)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_native": None, "_asker": None}

    def __repr__(self) -> str:
        return f"Sampler({self.samples} samples, shuffle={self.shuffle}, seed={self.seed}, tail={self.tail!r}, epoch {self._epoch}, {self.taken} taken)"


def _asker_for_workers() -> Any:
    """Returns the iterator of a DataLoader with workers in whose call this is, or None. It is private to torch: where it has another name, nobody is warned."""
    frame = sys._getframe(1)
    while frame is not None:
        one = frame.f_locals.get("self")
        if any(each.__name__ == "_MultiProcessingDataLoaderIter" for each in type(one).__mro__):
            return one
        frame = frame.f_back  # type: ignore[assignment]
    return None
