"""Runs a function in ranks from a program or a notebook: `horovod.run`."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import types
from typing import Any, Callable, Dict, List, Optional, Sequence

__all__ = ["run"]


def _pickler() -> Any:
    """cloudpickle, which takes functions of a notebook too, or pickle."""
    try:
        import cloudpickle

        return cloudpickle
    except ImportError:
        return pickle


def _words(options: Dict[str, Any]) -> List[str]:
    """Options of horovodrun for the arguments of `run` that were given."""
    words: List[str] = []
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words += [name, str(value)]
    return words


def _main_file() -> Optional[str]:
    """The program's own file, which the ranks load so that functions of it can be found; None in a notebook or at a prompt."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    return os.path.abspath(path) if path and os.path.isfile(path) else None


NOT_FOUND = "without cloudpickle it must stand in a file that ranks can load, and not in a function or behind `if __name__`; move it there, or install cloudpickle"


def _check_found(func: Callable[..., Any]) -> None:
    """Pickle hands on the name of a function alone."""
    if not isinstance(func, types.FunctionType):
        return
    found: Any = sys.modules.get(func.__module__)
    for part in func.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not func or (func.__module__ == "__main__" and _main_file() is None):
        raise ValueError(f"horovod.run: ranks cannot find the function {func.__qualname__} of {func.__module__}: {NOT_FOUND}")


def _results(folder: str) -> List[Any]:
    results = []
    while os.path.exists(os.path.join(folder, f"result.{len(results)}")):
        with open(os.path.join(folder, f"result.{len(results)}"), "rb") as file:
            results.append(pickle.load(file))
    return results


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    num_proc: Optional[int] = None,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Optional[Sequence[int]] = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    host_discovery_script: Optional[str] = None,
    start_timeout: Optional[int] = None,
    ssh_port: Optional[int] = None,
    ssh_identity_file: Optional[str] = None,
    disable_cache: Optional[bool] = None,
    output_filename: Optional[str] = None,
    verbose: Optional[bool] = None,
    use_gloo: Optional[bool] = None,
    use_mpi: Optional[bool] = None,
    mpi_args: Optional[str] = None,
    network_interface: Optional[str] = None,
    network_interfaces: Optional[str] = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
) -> List[Any]:
    """Runs func(*args, **kwargs) in ranks that `muster run --as-horovod` starts, and waits for them.

    The function and its results are pickled (by cloudpickle where it can be imported) into files: of a temporary folder, or, with hosts, of a folder in the
    working directory, which all hosts must share. Without cloudpickle a function of the program itself is found by loading the program again, so that its
    call of `run` must stand behind `if __name__ == "__main__":`.

    Args:
        func: calls `hvd.init()` itself.
        num_proc: number of ranks (1); `np` is the same.
        executable: the Python that runs the ranks; default: this one.
        min_num_proc, …: as the options of horovodrun of these names.

    Returns:
        The results, in the order of the ranks.

    Raises:
        ValueError: arguments that cannot be taken.
        RuntimeError: a rank has failed; its output tells why.
    """
    from horovod.runner.launch import muster_command

    options = {
        "--min-np": min_num_proc if min_num_proc is not None else min_np,
        "--max-np": max_num_proc if max_num_proc is not None else max_np,
        "--slots-per-host": slots,
        "--reset-limit": reset_limit,
        "--hosts": hosts,
        "--hostfile": hostfile,
        "--host-discovery-script": host_discovery_script,
        "--start-timeout": start_timeout,
        "--ssh-port": ssh_port,
        "--ssh-identity-file": ssh_identity_file,
        "--disable-cache": disable_cache,
        "--output-filename": output_filename,
        "--verbose": verbose or None,
        "--gloo": use_gloo,
        "--mpi": use_mpi,
        "--mpi-args": mpi_args,
        "--network-interfaces": network_interfaces or network_interface,
    }
    ranks = num_proc if num_proc is not None else np if np is not None else 1
    elsewhere = hosts is not None or hostfile is not None or host_discovery_script is not None
    folder = tempfile.mkdtemp(prefix=".horovod-run.", dir=os.getcwd() if elsewhere else None)
    try:
        pickler = _pickler()
        if pickler is pickle:
            _check_found(func)
        with open(os.path.join(folder, "paths"), "wb") as file:
            pickle.dump((sys.path, _main_file() if pickler is pickle else None), file)
        with open(os.path.join(folder, "call"), "wb") as file:
            pickler.dump((func, tuple(args), dict(kwargs or {})), file)
        program = [executable or sys.executable, "-m", "horovod.runner.call_function", folder]
        cool_down = ["--blacklist-cooldown-range", *map(str, cooldown_range)] if cooldown_range else []
        command, variables, to = muster_command(["-np", str(ranks), *_words(options), *cool_down, *program], os.environ)
        for note in to.notes:
            print(f"horovod.run: note: {note}", file=sys.stderr)
        code = subprocess.run(command, env={**os.environ, **variables}).returncode
        if code != 0:
            raise RuntimeError(f"the ranks of horovod.run ended with the code {code}; what they wrote tells why")
        results = _results(folder)
        if len(results) != ranks:
            raise RuntimeError(f"{len(results)} of {ranks} ranks left a result in {folder}; do all hosts share that folder?")
        return results
    finally:
        shutil.rmtree(folder, ignore_errors=True)
