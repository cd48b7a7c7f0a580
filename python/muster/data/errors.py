"""Names what can go wrong with a dataset: each class is muster.data.Error and the built-in exception that fits."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """Base of all that muster.data raises by itself. The text is complete: what failed, the values, why, and one thing to do."""


class UsageError(Error, ValueError):
    """Wrong arguments."""


class UnavailableError(Error, RuntimeError):
    """This machine, build or file cannot do it."""


class ReadError(Error, OSError):
    """A system call or a read has failed, or there is no memory."""


class LibraryError(Error, OSError):
    """HDF5 has failed; also a file that is no HDF5 file, or was cut short."""


class InternalError(Error, RuntimeError):
    """A fault in muster."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such file, or no such split in it."""


class DataError(Error, ValueError):
    """A file that is damaged, has changed, or is no dataset of muster's."""


#: By the codes of _muster_data.
CLASS_OF_CODE: Dict[int, Type[Error]] = {
    2: UsageError,
    5: UnavailableError,
    6: ReadError,
    7: LibraryError,
    8: InternalError,
    9: NotFoundError,
    10: DataError,
}
