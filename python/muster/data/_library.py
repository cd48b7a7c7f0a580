"""Finds and loads libmuster_io.so, and declares its functions and structs (io/c_api/muster_io.h).

Nothing is loaded at import: library() does it, when the first Dataset, Sampler or Loader is made. The library needs HDF5, and with it libmpi, in this process;
it initialises MPI only for a Loader with memory="shared" over several nodes.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import threading
import weakref
from typing import Any, ClassVar, Iterator, List, Optional

from .errors import CLASS_OF_CODE, InternalError, UnavailableError

ABI = 4
NAME = f"libmuster_io.so.{ABI}"
END = 1  #: muster_loader_next: the epoch is over

_u64, _int, _pointer, _text = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p


class _Struct(ctypes.Structure):
    """A struct that begins with its size; what is not given is zero."""

    def __init__(self, **values: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **values)


class Facts(_Struct):
    _fields_: ClassVar[Any] = (
        [("struct_size", ctypes.c_size_t)]
        + [(name, _u64) for name in ("samples", "channels", "height", "width", "sample_bytes", "label_bytes", "classes")]
        + [(name, _u64) for name in ("image_offset", "label_offset", "class_names")]
        + [(name, _int) for name in ("type", "label_type", "is_row")]
    )


class SamplerOptions(_Struct):
    _fields_: ClassVar[Any] = (
        [("struct_size", ctypes.c_size_t), ("seed", _u64)]
        + [(name, _int) for name in ("sequential", "tail", "spread")]
        + [("window_chunk_samples", _u64), ("window_chunks", _u64), ("weights", ctypes.POINTER(ctypes.c_double)), ("draws", _u64), ("once", _int)]
    )


class EpochPart(_Struct):
    _fields_: ClassVar[Any] = [
        ("struct_size", ctypes.c_size_t),
        ("epoch", _u64),
        ("rank", _int),
        ("world", _int),
        ("start", _u64),
        ("node_first", _int),
        ("node_ranks", _int),
    ]


class Transform(_Struct):
    _fields_: ClassVar[Any] = (
        [("struct_size", ctypes.c_size_t), ("mean", ctypes.POINTER(ctypes.c_float)), ("deviation", ctypes.POINTER(ctypes.c_float))]
        + [(name, _u64) for name in ("channels", "crop_height", "crop_width", "pad")]
        + [("random", _int), ("flip", _int)]
    )


class LoaderOptions(_Struct):
    _fields_: ClassVar[Any] = (
        [("struct_size", ctypes.c_size_t), ("batch", _u64)]
        + [(name, _int) for name in ("rank", "world", "local_rank", "local_size", "memory", "prefetch", "workers", "readers")]
        + [("transform", ctypes.POINTER(Transform)), ("large_pages", _int), ("pinned", _int)]
    )


class BatchFacts(_Struct):
    """muster_batch; addresses as numbers, None for null."""

    _fields_: ClassVar[Any] = [
        ("struct_size", ctypes.c_size_t),
        ("images", _pointer),
        ("values", _pointer),
        ("labels", _pointer),
        ("samples", _pointer),
        ("count", _u64),
        ("global_count", _u64),
        ("resume_at", _u64),
    ]


class LoaderTimes(_Struct):
    _fields_: ClassVar[Any] = [("struct_size", ctypes.c_size_t)] + [(name, _u64) for name in ("steps", "samples", "bytes")] + [
        (name, ctypes.c_double) for name in ("waited_s", "total_s", "utilisation")
    ]


_made, _size = ctypes.POINTER(_pointer), ctypes.POINTER(_u64)
_FUNCTIONS = {
    "muster_io_abi": [],
    "muster_dataset_open": [_text, _text, _made],
    "muster_dataset_close": [_pointer],
    "muster_dataset_describe": [_pointer, ctypes.POINTER(Facts)],
    "muster_dataset_class_name": [_pointer, _u64, ctypes.POINTER(_text)],
    "muster_dataset_read": [_pointer, _u64, _u64, _pointer, _pointer],
    "muster_dataset_verify": [_pointer],
    "muster_dataset_window": [_pointer, _size, _size],
    "muster_sampler_create": [_u64, ctypes.POINTER(SamplerOptions), _made],
    "muster_sampler_free": [_pointer],
    "muster_sampler_count": [_pointer, ctypes.POINTER(EpochPart), _size],
    "muster_sampler_fill": [_pointer, ctypes.POINTER(EpochPart), _u64, _u64, _size],
    "muster_loader_create": [_pointer, _pointer, ctypes.POINTER(LoaderOptions), _made],
    "muster_loader_create_shared": [_pointer, _pointer, ctypes.POINTER(LoaderOptions), _made],
    "muster_loader_free": [_pointer],
    "muster_loader_epoch": [_pointer, _u64, _u64, _size],
    "muster_loader_next": [_pointer, ctypes.POINTER(BatchFacts)],
    "muster_loader_report": [_pointer, ctypes.POINTER(LoaderTimes)],
}

_loaded: Optional[ctypes.CDLL] = None
_loading = threading.Lock()
hdf5_lock = threading.Lock()  #: HDF5 has one lock or none: who opens or reads a file through the library holds this one


def _forget_locks() -> None:
    global _loading, hdf5_lock
    _loading, hdf5_lock = threading.Lock(), threading.Lock()


os.register_at_fork(after_in_child=_forget_locks)  # another thread of the parent may have held them


def candidates() -> Iterator[str]:
    """Where the library may lie, the likeliest first: beside this package as CMake installs or builds it, in the prefix of this Python."""
    package = pathlib.Path(os.path.abspath(__file__)).parents[1]
    yield str(package.parents[2] / NAME)  # PREFIX/lib/muster/python/muster
    yield str(package.parents[1] / "io" / "shared" / NAME)  # BUILD/python/muster
    for folder in dict.fromkeys([str(package.parents[2]), os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "lib64")]):
        yield os.path.join(folder, NAME)  # PREFIX/lib/python3.N/site-packages/muster
    yield str(package / "_installed" / "lib" / NAME)  # as pip installs it


def _find() -> str:
    if named := os.environ.get("MUSTER_IO_LIBRARY"):
        return named
    return next((path for path in candidates() if os.path.exists(path)), NAME)


def library() -> ctypes.CDLL:
    """libmuster_io.so, loaded at the first call.

    Raises:
        UnavailableError: it was not found, needs something that is not here, or is older than this package.
    """
    global _loaded
    if _loaded is not None:
        return _loaded
    with _loading:
        if _loaded is not None:
            return _loaded
        path = _find()
        try:
            opened = ctypes.CDLL(path)
        except OSError as problem:
            looked = "" if os.environ.get("MUSTER_IO_LIBRARY") else f"; looked at {', '.join(dict.fromkeys(candidates()))} and where the loader looks"
            raise UnavailableError(
                f"{path} could not be loaded: {problem}{looked}; install muster built with HDF5 and MPI, or set MUSTER_IO_LIBRARY to its {NAME}"
            ) from None
        try:
            found = opened.muster_io_abi()
            if found < ABI:
                raise UnavailableError(f"{path} has ABI {found}, this package needs {ABI}; use the library and the package of one muster")
            for name, arguments in _FUNCTIONS.items():
                getattr(opened, name).argtypes = arguments
        except AttributeError as problem:
            raise UnavailableError(f"{path} is no libmuster_io.so: {problem}; set MUSTER_IO_LIBRARY to muster's {NAME}") from None
        opened.muster_io_last_error.restype = _text
        opened.muster_loader_why.argtypes, opened.muster_loader_why.restype = [_pointer], _text
        _loaded = opened
        return opened


def check(code: int) -> None:
    """Raises the exception for a code that is not 0, with the library's own text."""
    if code != 0:
        text = library().muster_io_last_error().decode(errors="replace")
        raise CLASS_OF_CODE.get(code, InternalError)(text)


class Handle:
    """Owns what the library made; freed with the last reference, in the process that made it (a fork has neither its threads nor its locks).

    At the interpreter's exit it is left to the system: what is not freed by then may be in use by others.
    """

    def __init__(self, free: str, pointer: int) -> None:
        self.pointer = pointer
        self.pid = os.getpid()
        self._finalizer = weakref.finalize(self, _free, getattr(library(), free), pointer, self.pid)
        self._finalizer.atexit = False

    def free(self) -> None:
        self._finalizer()


def _free(function: Any, pointer: int, pid: int) -> None:
    if os.getpid() == pid:
        function(pointer)


def _create(function: str, free: str, *arguments: Any) -> Handle:
    made = _pointer()
    check(getattr(library(), function)(*arguments, ctypes.byref(made)))
    assert made.value is not None
    return Handle(free, made.value)


def open_dataset(path: str, split: str) -> Handle:
    """Hold hdf5_lock."""
    return _create("muster_dataset_open", "muster_dataset_close", os.fsencode(path), split.encode())


def create_sampler(samples: int, options: SamplerOptions) -> Handle:
    return _create("muster_sampler_create", "muster_sampler_free", samples, ctypes.byref(options))


def create_loader(data: Handle, sampler: Handle, options: LoaderOptions, shared: bool) -> Handle:
    """Hold hdf5_lock."""
    function = "muster_loader_create_shared" if shared else "muster_loader_create"
    return _create(function, "muster_loader_free", data.pointer, sampler.pointer, ctypes.byref(options))


def describe(data: Handle) -> Facts:
    facts = Facts()
    check(library().muster_dataset_describe(data.pointer, ctypes.byref(facts)))
    return facts


def class_names(data: Handle, facts: Facts) -> List[str]:
    names = []
    for number in range(facts.class_names):
        name = _text()
        check(library().muster_dataset_class_name(data.pointer, number, ctypes.byref(name)))
        names.append((name.value or b"").decode(errors="replace"))
    return names


def file_window(data: Handle) -> "tuple[int, int]":
    """The window of a shuffle that suits a file: samples of a chunk, chunks; 0 and 0 up to 4 GiB."""
    chunk_samples, chunks = _u64(), _u64()
    check(library().muster_dataset_window(data.pointer, ctypes.byref(chunk_samples), ctypes.byref(chunks)))
    return chunk_samples.value, chunks.value
