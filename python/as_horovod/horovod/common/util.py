"""Answers what programs ask `horovod.common.util`: what was built in, and small helpers."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from typing import Any, Iterator, List, Optional, Sequence, TypeVar

_Any = TypeVar("_Any")


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Returns whether collectives on this framework's tensors ("torch", "tensorflow", "keras") can run here: it is installed."""
    return ext_base_name in ("torch", "tensorflow", "keras") and importlib.util.find_spec(ext_base_name) is not None


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """ImportError where the framework of the extension ("horovod.torch") is not installed."""
    framework = ext_name.rpartition(".")[2]
    if not extension_available(framework):
        raise ImportError(f"{ext_name} needs {framework}, which this Python does not have; install it")


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Returns whether torch sees a GPU; of other frameworks False."""
    if ext_base_name != "torch" or not extension_available("torch"):
        return False
    import torch

    return torch.cuda.is_available()


_cache = functools.lru_cache(maxsize=None)


def mpi_built(verbose: bool = False) -> bool:
    """Returns whether muster can use MPI here."""
    return _built("mpi_built")


def gloo_built(verbose: bool = False) -> bool:
    """True: the ranks start and meet without MPI, which is what programs ask by this."""
    return True


def nccl_built(verbose: bool = False) -> int:
    """NCCL's version, 21805 for 2.18.5; 0 without."""
    return _built("nccl_built")


def ddl_built(verbose: bool = False) -> bool:
    """False: IBM's DDL is not used."""
    return False


def ccl_built(verbose: bool = False) -> bool:
    """False: Intel's oneCCL is not used."""
    return False


def _built(name: str) -> Any:
    from muster import built

    return getattr(built, name)()


def get_average_backwards_compatibility_fun(reduce_ops: Any) -> Any:
    """The function (op, average) -> op that lets a call say average=True or False in place of op; ValueError for both."""

    def choose(op: Any, average: Optional[bool]) -> Any:
        if op is not None and average is not None:
            raise ValueError("op and average are both given; give op alone")
        if op is not None:
            return op
        return reduce_ops.Sum if average is False else reduce_ops.Average

    return choose


@contextlib.contextmanager
def env(**variables: Optional[str]) -> Iterator[None]:
    """Sets environment variables (None: removes them) while the block runs."""
    before = {name: os.environ.get(name) for name in variables}

    def put(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(variables)
    try:
        yield
    finally:
        put(before)


def num_rank_is_power_2(num_rank: int) -> bool:
    """Returns whether the number of ranks is 1, 2, 4, 8 …"""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(values: Sequence[_Any], parts: int) -> List[Sequence[_Any]]:
    """The values in so many consecutive parts, whose lengths differ by one at most, the longer ones first; no empty ones."""
    length, longer = divmod(len(values), parts)
    ends = [i * length + min(i, longer) for i in range(parts + 1)]
    return [values[begin:end] for begin, end in zip(ends, ends[1:]) if end > begin]


def is_iterable(value: Any) -> bool:
    """Returns whether it can be iterated over."""
    try:
        iter(value)
    except TypeError:
        return False
    return True


def is_version_greater_equal_than(version: str, target: str) -> bool:
    """Returns whether the version "2.15.0+cu13" is at least the target "2.1.0", compared by their numbers."""
    import re

    def numbers(text):
        return [int(number) for number in re.findall(r"\d+", text.partition("+")[0])[:3]]

    return numbers(version) >= numbers(target)


def check_installed_version(name: str, version: str, exception: Optional[Exception] = None) -> None:
    """Does nothing: nothing of muster is built against a version of a framework."""
