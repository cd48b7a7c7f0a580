"""Delivers batches of a dataset file, gathered by the native loader: without workers, and without a copy beyond the gathering."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _library
from ._arrays import ELEMENTS, F32, U8, Element, check_choice, for_losses, import_for, signed_for_torch, to_array
from .batch import Batch, Views
from .dataset import Dataset, given_dataset
from .errors import UsageError
from .sampler import Number, Sampler

_MEMORY = ("automatic", "whole", "mapped", "shard", "shared", "windowed")
_KINDS = ("torch", "numpy", "jax", "buffer")

Numbers = Union[float, Sequence[float]]


class Report(NamedTuple):
    """Says how the time of a pass was spent, without its first step."""

    steps: int  #: batches delivered, with the first
    samples: int  #: in them
    bytes: int  #: image bytes that these samples have in the file
    waited_s: float  #: seconds in which the program waited for a batch
    total_s: float  #: seconds from the end of the first step to the last call for a batch

    @property
    def waited(self) -> float:
        """The share of the time that was waited, 0 to 1; MLPerf Storage's accelerator utilisation is 1 minus this."""
        return self.waited_s / self.total_s if self.total_s > 0 else 0.0


def _per_channel(values: Numbers, channels: int, what: str) -> List[float]:
    try:
        listed = [float(each) for each in values]  # type: ignore[union-attr]
    except TypeError:
        listed = [float(values)] * channels  # type: ignore[arg-type]
    if len(listed) != channels:
        raise UsageError(f"normalize: {what} has {len(listed)} numbers for {channels} channels; give one number, or one a channel")
    return listed


def _pair(value: Union[int, Tuple[int, int], None], what: str) -> Tuple[int, int]:
    if value is None:
        return 0, 0
    height, width = (value, value) if isinstance(value, int) else value
    if height < 1 or width < 1:
        raise UsageError(f"{what} is {height} x {width}; give at least 1 x 1")
    return height, width


class Loader:
    """Batches of a dataset file: `for images, labels in loader`. One pass is one epoch; over all ranks it has what the sampler says, every sample once.

    Images have shape [count, C, H, W], rows of a table [count, n]; labels [count], int64 with torch, targets float32, else of the file's type. With "torch", "numpy" and "buffer" images lie in the loader's own
    memory: **a batch is valid until the next one is asked for**, and its memory is then written again; `copy=True` gives each batch memory of its own. A batch that
    is kept longer keeps the memory, not the numbers. Labels with torch, and everything with "jax", have memory of their own anyway. An autograd graph that holds a
    batch must be gone through (`backward()`) before the next one is asked for.

    Every rank's pass has the same number of batches, so that all ranks may meet in each step; where the samples do not divide (`tail="exact"`), the last batch of a
    rank may be smaller than that of others, or empty: average with `batch.global_count`, or choose tail "pad" or "drop".

    Args:
        source: a path, or a Dataset without a transform.
        split: for a path; "train" if None.
        batch_size: samples of a rank's batch.
        shuffle, seed, tail, rank, size: as of Sampler.
        sampler: a Sampler of the same dataset in place of these five, for weights, windows and spreads.
        normalize: (mean, standard deviation), each one number or one a channel: f32 values (byte / 255 - mean) / deviation.
        crop: (height, width) or one number for both; in the middle, or with `random_crop` anywhere, after `padding` rows and columns of zero bytes on each side.
        flip: mirrors every second image left to right, by chance. Chance is a function of seed, epoch and sample alone.
        dtype: "f32", or "u8" for the bytes as they are; None: f32 if normalize, crop or flip is given, else what the file holds. f32 without normalize is byte / 255.
        channels_last: with torch the same shape in memory_format channels_last, with numpy and jax shape [count, H, W, C]. One copy more.
        device: with torch, where images and labels go, such as "cuda"; with jax a jax.Device. To a GPU from pinned memory, beside the host. (No GPU has run this.)
        as_: "torch", "numpy", "jax" or "buffer" (memoryviews). Only what is named is imported; torch needs no NumPy.
        transform: called with the images of each batch, last; what it returns takes their place.
        memory: where the samples lie: "automatic", "whole", "mapped", "shard", "shared", "windowed" (docs/datasets.md). "shared" is collective over all ranks of the
            job, whose rank and size it takes; it is the only one that communicates, over several nodes by MPI.
        pinned: batches in pinned memory; None: with a device that is a GPU, or where this thread has a CUDA context.
        prefetch: batches gathered ahead by `workers` threads; None: as the loader chooses, 0: none.
        readers: threads that read, with memory "windowed".
        copy: every batch in memory of its own.

    Raises:
        as Dataset; UsageError on arguments that contradict; UnavailableError where a mode or package is not there. While batches are made: ReadError, DataError.

    Creating it reads the samples into memory, unless they are mapped or windowed. One thread at a time; not after a fork: each process makes its own. Needs the module _muster_data.
    """

    def __init__(
        self,
        source: Union[str, "os.PathLike[str]", Dataset],
        split: Optional[str] = None,
        batch_size: int = 64,
        *,
        shuffle: bool = True,
        seed: int = 0,
        tail: str = "exact",
        rank: Number = None,
        size: Number = None,
        sampler: Optional[Sampler] = None,
        normalize: Optional[Tuple[Numbers, Numbers]] = None,
        crop: Union[int, Tuple[int, int], None] = None,
        padding: int = 0,
        random_crop: bool = False,
        flip: bool = False,
        dtype: Any = None,
        channels_last: bool = False,
        device: Any = None,
        as_: str = "torch",
        transform: Optional[Callable[[Any], Any]] = None,
        memory: str = "automatic",
        pinned: Optional[bool] = None,
        prefetch: Optional[int] = None,
        workers: int = 1,
        readers: int = 4,
        large_pages: bool = False,
        copy: bool = False,
    ) -> None:
        check_choice("as_", as_, _KINDS)
        check_choice("memory", memory, _MEMORY)
        for name, value, least in (("batch_size", batch_size, 1), ("prefetch", prefetch, 0), ("workers", workers, 1), ("readers", readers, 1), ("padding", padding, 0)):
            if value is not None and value < least:
                raise UsageError(f"{name} is {value}; give at least {least}")
        if channels_last and as_ == "buffer":
            raise UsageError('channels_last with as_="buffer", which has no strides; choose another as_')
        if device is not None and as_ not in ("torch", "jax"):
            raise UsageError(f'device={device!r} with as_="{as_}"; leave it out, or choose "torch" or "jax"')
        self._import(as_)
        self._dataset = data = given_dataset(source, split)
        if data.transform is not None:
            raise UsageError(
                "the Dataset has a transform, which the loader does not call for each image; give normalize, crop, flip or transform to the Loader, or use DataLoader"
            )
        if sampler is not None:
            if not shuffle or seed != 0 or tail != "exact" or rank is not None or size is not None:
                raise UsageError("shuffle, seed, tail, rank or size is given beside a sampler, which has its own; give them to the Sampler")
            if sampler.samples != len(data):
                raise UsageError(f"the sampler is for {sampler.samples} samples, {data.path} has {len(data)}; make it of this dataset")
        self.batch_size = batch_size
        self.shape = data.shape
        transforming = self._transform_of(normalize, crop, padding, random_crop, flip, dtype)
        self._element = F32 if transforming is not None else ELEMENTS[[e.name for e in ELEMENTS].index(data.dtype)]
        if channels_last and len(self.shape) == 1:
            raise UsageError(f"channels_last, and {data.path} holds rows, which have no channels; leave it out")
        self._kind, self._channels_last, self._transform, self._copy = as_, channels_last, transform, copy
        self._device = self._device_of(device)
        self._on_gpu = as_ == "torch" and self._device is not None and self._device.type == "cuda"
        if pinned is None and self._on_gpu:
            pinned = True

        with _library.hdf5_lock:
            native = _library.open_dataset(data._absolute, data.split)
            try:
                if sampler is None:
                    window = native.window()
                    sampler = Sampler(data, rank, size, shuffle, seed, tail, window=window if window[0] else None)
                self.sampler = sampler
                self._place = place = sampler.place()
                made = _library.library().loader(
                    native,
                    sampler.native(),
                    shared=memory == "shared",
                    batch=batch_size,
                    place=(0, 0, 0, 0) if memory == "shared" else tuple(place),
                    memory=_MEMORY.index(memory),
                    prefetch=0 if prefetch is None else prefetch or -1,
                    workers=workers,
                    readers=readers,
                    large_pages=large_pages,
                    pinned=0 if pinned is None else 1 if pinned else -1,
                    transform=transforming,
                )
            finally:
                native.close()
        self._native: Any = made  # None: closed
        self._pid = os.getpid()
        self._why: str = made.why()
        kind = "numpy" if as_ == "jax" else as_
        self._images = Views(kind, self._element, self.shape, batch_size, made)
        self._labels: Optional[Views] = None
        if data.has_labels:
            element = data._facts.label_element
            self._labels = Views(kind, signed_for_torch(element) if as_ == "torch" else element, (), batch_size, made)
        self._finish = getattr(type(self), "_finish_" + as_)  # not bound: the loader must not hold itself
        self._running: Optional[int] = None  # the number of the pass that runs
        self._sent: Any = None  # the CUDA event of the last batch's way to the GPU
        self._last_report = Report(0, 0, 0, 0.0, 0.0)

    # What it is made of.
    # ----------------------------------------------------------------------------------------------------------------

    def _import(self, kind: str) -> None:
        self._package = import_for("numpy" if kind == "jax" else kind) if kind != "buffer" else None
        self._jax = import_for("jax") if kind == "jax" else None

    def _device_of(self, device: Any) -> Any:
        return self._package.device(device) if device is not None and self._kind == "torch" else device  # type: ignore[union-attr]

    def _transform_of(
        self,
        normalize: Optional[Tuple[Numbers, Numbers]],
        crop: Union[int, Tuple[int, int], None],
        padding: int,
        random_crop: bool,
        flip: bool,
        dtype: Any,
    ) -> Optional[_library.Transform]:
        """Returns how bytes become f32, and the shape that they then have; None: they stay as they are."""
        data = self._dataset
        wanted = None
        if dtype is not None:  # also torch.float32, numpy.float32
            name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype).rpartition(".")[2])
            wanted = check_choice("dtype", {"float32": "f32", "uint8": "u8"}.get(name, name), ("f32", "u8"))
        asked = [name for name, given in (("normalize", normalize), ("crop", crop), ("padding", padding), ("random_crop", random_crop), ("flip", flip)) if given]
        if wanted == "u8" and asked:
            raise UsageError(f'{", ".join(asked)} with dtype="u8": these make f32; leave dtype out')
        if wanted == "u8" and data.dtype != U8.name:
            raise UsageError(f'dtype="u8", and {data.path} holds {data.dtype}; leave dtype out')
        if not asked and (wanted is None or wanted == "u8" or data.dtype == F32.name):
            return None
        if data.dtype != U8.name:
            raise UsageError(f"{', '.join(asked) or 'dtype=' + repr(dtype)}: only bytes are prepared, and {data.path} holds {data.dtype}; leave it out, and give a transform")
        is_row = len(self.shape) == 1
        if is_row and [name for name in asked if name != "normalize"]:
            raise UsageError(f"{', '.join(asked)}: {data.path} holds rows, and only images are cropped and flipped; leave it out")
        channels, height, width = (1, 1, *self.shape) if is_row else self.shape
        crop_height, crop_width = _pair(crop, "crop")
        mean = deviation = None
        if normalize is not None:
            try:
                mean, deviation = normalize
            except (TypeError, ValueError):
                raise UsageError(f"normalize is {normalize!r}; give (mean, standard deviation)") from None
            mean, deviation = _per_channel(mean, channels, "the mean"), _per_channel(deviation, channels, "the deviation")
        made = _library.Transform(channels, crop_height, crop_width, padding, random_crop, flip, mean, deviation)
        if is_row:
            return made
        self.shape = (channels, crop_height or height + 2 * padding, crop_width or width + 2 * padding)
        return made

    @property
    def why(self) -> str:
        """The memory mode and what decided it, in one line, for people."""
        return self._why

    @property
    def rank(self) -> int:
        return self._place.rank

    @property
    def size(self) -> int:
        return self._place.size

    # Batches.
    # ----------------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        """Begins a pass, and ends the one before. A pass that was broken off is begun again from where it began; one that ended is followed by the next epoch."""
        begun = _Pass(self)
        self._running = begun._number
        return begun

    def __len__(self) -> int:
        """Batches of the pass that runs, or, where none does, of the next: the same number on every rank."""
        longest = self.sampler._count(self.sampler._part(self._place._replace(rank=0, local_rank=0), *self.sampler.next_pass()))
        return -(-longest // self.batch_size)

    def _living(self) -> Any:
        if self._native is None:
            raise UsageError("this Loader was closed; make another")
        if self._pid != os.getpid():
            raise UsageError(
                f"this Loader was made in process {self._pid}, and this is process {os.getpid()}, forked from it, which has none of its threads; "
                "make a Loader in each process, or use Dataset with DataLoader's workers"
            )
        return self._native

    def _batch(self, delivered: Tuple[int, int, bytes, int, int, int]) -> Batch:
        images_at, labels_at, numbers, count, global_count, resume_at = delivered
        images = self._images.at(images_at, count)
        labels = self._labels.at(labels_at, count) if self._labels is not None else None
        images, labels = self._finish(self, images, labels)
        if self._transform is not None:
            images = self._transform(images)
        batch = Batch((images,) if labels is None else (images, labels))
        batch.count, batch.global_count, batch.resume_at, batch._numbers = count, global_count, resume_at, numbers
        return batch

    def _finish_torch(self, images: Any, labels: Any) -> Tuple[Any, Any]:
        torch = self._package
        assert torch is not None
        if labels is not None:
            labels = for_losses(torch, labels)
        if self._channels_last:
            images = images.clone(memory_format=torch.channels_last)
        elif self._copy and self._device is None:
            images = images.clone()
        if self._device is not None:
            if labels is not None:
                labels = labels.to(self._device, non_blocking=True)
            images = images.to(self._device, non_blocking=True, copy=self._copy and not self._channels_last)
            if self._on_gpu:
                self._sent = torch.cuda.Event()
                self._sent.record(torch.cuda.current_stream(self._device))
        return images, labels

    def _finish_numpy(self, images: Any, labels: Any) -> Tuple[Any, Any]:
        if self._channels_last:
            images = images.transpose(0, 2, 3, 1).copy()
        elif self._copy:
            images = images.copy()
        return images, labels.copy() if self._copy and labels is not None else labels

    def _finish_buffer(self, images: Any, labels: Any) -> Tuple[Any, Any]:
        if self._copy:
            images, labels = (each if each is None else to_array("buffer", bytearray(each), e, each.shape if each else (0,)) for each, e in self._with_elements(images, labels))
        return images, labels

    def _with_elements(self, images: Any, labels: Any) -> List[Tuple[Any, Element]]:
        return [(images, self._element), (labels, self._dataset._facts.label_element)]

    def _finish_jax(self, images: Any, labels: Any) -> Tuple[Any, Any]:
        """JAX runs behind the program and takes arrays for constant, so it gets separate memory."""
        if self._channels_last:
            images = images.transpose(0, 2, 3, 1)
        return tuple(self._to_jax(each) for each in (images, labels))  # type: ignore[return-value]

    def _to_jax(self, array: Any) -> Any:
        if array is None:
            return None
        there = self._jax.numpy.from_dlpack(array.copy(order="C"))  # type: ignore[union-attr]
        return there if self._device is None else self._jax.device_put(there, self._device)  # type: ignore[union-attr]

    def _wait_until_sent(self) -> None:
        if self._sent is not None:
            self._sent.synchronize()
            self._sent = None

    # Where it stands.
    # ----------------------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch that runs, or, before the first pass, comes."""
        return self.sampler.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass one over this epoch, as Sampler.set_epoch does."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> Dict[str, Any]:
        """Returns where all ranks stand after the last batch that was delivered: plain values, the same on every rank. A Sampler takes it too."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Makes the next pass go on from there, also where the number of ranks was another: nothing comes twice, nothing is missed. As Sampler.load_state_dict."""
        self.sampler.load_state_dict(state)
        self._running = None

    def report(self) -> Report:
        """Returns how the time of the newest pass was spent, so far."""
        if self._native is not None and self._pid == os.getpid():
            self._last_report = Report(*self._native.report())
        return self._last_report

    @property
    def waited(self) -> float:
        """The share of the newest pass's time in which the program waited for a batch, 0 to 1: f"waited {loader.waited:.1%}"."""
        return self.report().waited

    def close(self) -> None:
        """Ends it. Its memory is given back when no batch that lies in it is left. May be called again."""
        if self._native is None:
            return
        self.report()
        self._wait_until_sent()
        self._native = self._running = None
        del self._images, self._labels

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict:
        raise TypeError("a Loader cannot be pickled; make one in each process, and hand over its state_dict()")

    def __repr__(self) -> str:
        return f"Loader({self._dataset!r}, batches of {self.batch_size}, rank {self.rank} of {self.size}, as {self._kind})"


class _Pass(Iterator[Batch]):
    """One pass over a loader."""

    def __init__(self, loader: Loader) -> None:
        native = loader._living()
        loader._wait_until_sent()
        sampler = loader.sampler
        epoch, start = sampler.next_pass()
        self._loader, self._next = loader, native.next
        self._ended = False
        native.epoch(epoch, start)
        self._number = sampler.begin_pass(loader.size)

    def __iter__(self) -> "_Pass":
        return self

    def __next__(self) -> Batch:
        if self._ended:
            raise StopIteration
        loader = self._loader
        loader._living()
        if loader._running != self._number:
            raise UsageError("another pass over this Loader has begun, or its state was loaded; go through one pass at a time")
        if loader._sent is not None:
            loader._wait_until_sent()
        try:
            delivered = self._next()
        except Exception:
            self._ended = True
            raise
        if delivered is not None:
            batch = loader._batch(delivered)
            if self._number == loader.sampler._pass:
                loader.sampler.note(batch.resume_at)
            return batch
        self._ended = True
        if self._number == loader.sampler._pass:
            loader.sampler.note_end()
        raise StopIteration
