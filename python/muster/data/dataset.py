"""Reads samples of a dataset file one by one: a map-style dataset for torch's DataLoader."""

from __future__ import annotations

import mmap
import operator
import os
from typing import Any, Callable, Iterable, List, Optional, Tuple, Union

from . import _library
from ._arrays import ELEMENTS, F32, check_choice, import_for, numpy_is_there, to_array
from .errors import DataError, NotFoundError, UsageError

_Stamp = Tuple[int, int]  # bytes, time of change in ns


def _stamp_of(status: os.stat_result) -> _Stamp:
    return status.st_size, status.st_mtime_ns


class _Facts:
    """Holds what a file says about a split: plain values, which are pickled with the dataset."""

    def __init__(self, path: str, split: str) -> None:
        self.stamp = _stamp_of(os.stat(path)) if os.path.exists(path) else (0, 0)  # a missing file is told by the library
        with _library.hdf5_lock:
            data = _library.open_dataset(path, split)
            found = data.describe()
            self.class_names = [data.class_name(number) for number in range(found["class_names"])] or None
            named = bool(found["is_row"]) and data.column_name(0) is not None
            self.columns = [data.column_name(number) for number in range(found["shape"][2])] if named else None
            data.close()
        self.samples: int = found["samples"]
        self.shape: Tuple[int, ...] = found["shape"][2:] if found["is_row"] else found["shape"]
        self.element = ELEMENTS[found["type"]]
        self.sample_bytes: int = found["sample_bytes"]
        self.label_bytes: int = found["label_bytes"]
        self.label_element = ELEMENTS[found["label_type"]]
        self.classes: int = found["classes"]
        self.image_offset: int = found["image_offset"]
        self.label_offset: int = found["label_offset"]

    def same_samples(self, other: "_Facts") -> bool:
        mine = (self.samples, self.shape, self.element, self.label_bytes, self.label_element)
        return mine == (other.samples, other.shape, other.element, other.label_bytes, other.label_element)


class _OpenFile:
    """The file as this process has it: mapped where it can be, else read through the library."""

    def __init__(self, path: str, split: str, facts: _Facts) -> None:
        self.pid = os.getpid()
        self._facts = facts
        self._data: Any = None
        self._images: Optional[memoryview] = None
        labels = self._map(path, facts)
        if self._images is None or (labels is None and facts.label_bytes):
            with _library.hdf5_lock:
                self._data = _library.open_dataset(path, split)
        if labels is None and facts.label_bytes:
            labels = memoryview(self.read(0, facts.samples, False)[1])
        plain: Any = labels
        self.labels = plain.cast(facts.label_element.code) if labels is not None else None

    def _map(self, path: str, facts: _Facts) -> Optional[memoryview]:
        """Maps the images where they can be; returns the mapped labels."""
        parts = [
            (facts.image_offset, facts.samples * facts.sample_bytes),
            (facts.label_offset, facts.samples * facts.label_bytes),
        ]
        if not any(offset for offset, _ in parts):
            return None
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            end = max(offset + size_bytes for offset, size_bytes in parts if offset)
            if end > size:  # reading behind the end of a mapped file ends the process
                raise DataError(f"{path}: has {size} bytes, its samples end at byte {end}: it was cut short; copy or convert it again")
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        mapped = [whole[offset : offset + size_bytes] if offset and size_bytes else None for offset, size_bytes in parts]
        self._images = mapped[0]
        return mapped[1]

    def read(self, first: int, count: int, images: bool = True) -> Tuple[bytearray, bytearray]:
        """Bytes of samples (none without `images`) and of labels, read through the library."""
        pixels = bytearray(count * self._facts.sample_bytes if images else 0)
        labels = bytearray(count * self._facts.label_bytes)
        with _library.hdf5_lock:
            self._data.read(first, count, pixels, labels)
        return pixels, labels

    def images(self, first: int, count: int) -> bytearray:
        """A copy of the bytes of samples first … first+count-1."""
        if self._images is None:
            return self.read(first, count)[0]
        each = self._facts.sample_bytes
        return bytearray(self._images[first * each : (first + count) * each])


class Dataset:
    """A split of a dataset file: `dataset[i]` is `(image, label)`, or the image alone where the file has no labels.

    The image has shape [C, H, W], the row of a table [n]; it has the file's element type and memory of its own. The label is an int, a target a float32. Works with torch.utils.data.DataLoader as it is, with any
    number of workers and any way of starting them: it pickles, and each process opens the file at its first sample. Contiguous files are mapped, and workers then
    need neither HDF5 nor MPI; files in chunks or compressed are read through HDF5, slower.

    Args:
        path: the file.
        split: a group of it, such as "train" or "test".
        transform: called with each image; what it returns takes the image's place. It must pickle where workers are spawned.
        as_: "numpy" (ndarray), "torch" (Tensor; needs no NumPy) or "buffer" (memoryview); None: "numpy" if it is installed, else "buffer".

    Attributes:
        path, split, transform: as given.
        shape: (channels, height, width) of an image, (length,) of a row.
        dtype: NumPy's name of the element type, such as "uint8".
        classes: number of classes; labels are 0 … classes - 1; 0 of targets and without labels.
        class_names: their names, or None where the file has none.
        columns: of a table: what the elements of a row are called, or None where the file does not say.
        has_labels: whether the file has labels.
        has_targets: whether these are targets of a regression, of float32.

    Raises:
        NotFoundError (a FileNotFoundError): no such file or split.
        LibraryError (an OSError), DataError (a ValueError): it is damaged, cut short, or no dataset of muster's.
        UnavailableError: the module _muster_data cannot be loaded.

    One thread at a time may read a file that is not mapped; any number may read a mapped one.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        split: str = "train",
        transform: Optional[Callable[[Any], Any]] = None,
        *,
        as_: Optional[str] = None,
    ) -> None:
        if as_ is not None:
            check_choice("as_", as_, ("numpy", "torch", "buffer"))
        if not isinstance(path, (str, os.PathLike)):
            raise UsageError(f"a dataset is one file, given by its path, not {type(path).__name__}; of several files make one dataset each, or convert their sources into one file")
        self.path = os.fspath(path)
        self.split = split
        self.transform = transform
        self._as = as_
        self._absolute = os.path.abspath(self.path)  # a worker may have another working directory
        self._facts = _Facts(self._absolute, split)
        self._file: Optional[_OpenFile] = None

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._facts.shape

    @property
    def dtype(self) -> str:
        return self._facts.element.name

    @property
    def classes(self) -> int:
        return self._facts.classes

    @property
    def class_names(self) -> Optional[List[str]]:
        return list(self._facts.class_names) if self._facts.class_names is not None else None

    @property
    def columns(self) -> Optional[List[str]]:
        return list(self._facts.columns) if self._facts.columns is not None else None

    @property
    def has_labels(self) -> bool:
        return self._facts.label_bytes > 0

    @property
    def has_targets(self) -> bool:
        return self.has_labels and self._facts.label_element == F32

    def __len__(self) -> int:
        return self._facts.samples

    def __getitem__(self, index: Any) -> Any:
        """Sample `index`, from the end if negative; a list of samples for a slice or a sequence of numbers. IndexError outside."""
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        try:
            number = operator.index(index)
        except TypeError:
            return self.__getitems__(index)
        return self._sample(self._opened(), self._kind(), self._checked(number))

    def __getitems__(self, indices: Iterable[int]) -> List[Any]:
        """Several samples; torch's DataLoader asks so from 2.0 on."""
        file, kind = self._opened(), self._kind()
        return [self._sample(file, kind, self._checked(operator.index(each))) for each in indices]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def read(self, first: int = 0, count: Optional[int] = None) -> Any:
        """Samples first … first+count-1 (to the end if None) as arrays: images [count, C, H, W], and labels [count] if the file has them. No transform.

        Labels are int64 with torch, targets float32, else of the file's type. Both are copies. IndexError outside of the dataset.
        """
        last = len(self) if count is None else first + count
        if not 0 <= first <= last <= len(self):
            raise IndexError(f"{self.path}: samples {first} to {last} of {len(self)}")
        file, kind, facts = self._opened(), self._kind(), self._facts
        images = to_array(kind, file.images(first, last - first), facts.element, (last - first, *facts.shape))
        if file.labels is None:
            return images
        if kind == "torch":
            import torch

            return images, torch.tensor(file.labels[first:last].tolist(), dtype=torch.float32 if self.has_targets else torch.int64)
        return images, to_array(kind, bytearray(file.labels[first:last].cast("B")), facts.label_element, (last - first,))

    def verify(self) -> None:
        """Reads everything and compares it with the checksums. Raises DataError that names the array, the block, the samples and the bytes that differ."""
        with _library.hdf5_lock:
            data = _library.open_dataset(self._absolute, self.split)
            data.verify()
            data.close()

    def _sample(self, file: _OpenFile, kind: str, number: int) -> Any:
        image = to_array(kind, file.images(number, 1), self._facts.element, self._facts.shape)
        if self.transform is not None:
            image = self.transform(image)
        if file.labels is None:
            return image
        label = file.labels[number]
        if self.has_targets and kind != "buffer":  # of a Python float DataLoader would make float64
            label = import_for("numpy").float32(label) if kind == "numpy" else import_for("torch").tensor(label, dtype=import_for("torch").float32)
        return image, label

    def _checked(self, number: int) -> int:
        samples = self._facts.samples
        if not -samples <= number < samples:
            raise IndexError(f"{self.path}: no sample {number} in split {self.split!r}, which has {samples}")
        return number + samples if number < 0 else number

    def _kind(self) -> str:
        if self._as is None:
            self._as = "numpy" if numpy_is_there() else "buffer"
        return self._as

    def _opened(self) -> _OpenFile:
        """The file as this process has it; a child that was forked opens its own."""
        if self._file is None or self._file.pid != os.getpid():
            try:
                now = _stamp_of(os.stat(self._absolute))
            except FileNotFoundError:
                raise NotFoundError(f"{self.path}: the file is gone since this Dataset was made; make another") from None
            if now != self._facts.stamp:  # replaced or moved since it was described, here or where it was pickled
                fresh = _Facts(self._absolute, self.split)
                if not fresh.same_samples(self._facts):
                    raise DataError(f"{self.path}: has {fresh.samples} samples of other form than when this Dataset was made; make another")
                self._facts = fresh
            self._file = _OpenFile(self._absolute, self.split, self._facts)
        return self._file

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_file": None}

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"Dataset({self.path!r}, split={self.split!r}: {len(self)} samples of {shape} {self.dtype}, {'targets' if self.has_targets else f'{self.classes} classes'})"


def given_dataset(source: Any, split: Optional[str]) -> Dataset:
    """The dataset itself, or that of a path. UsageError for a Dataset and a split together."""
    if not isinstance(source, Dataset):
        return Dataset(source, "train" if split is None else split)
    if split is not None and split != source.split:
        raise UsageError(f"split={split!r} is given with a Dataset of split {source.split!r}; give a path, or leave split out")
    return source
