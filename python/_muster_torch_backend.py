"""Registers the backend "muster" with torch.distributed, where `import torch` finds it (entry point torch.backends, torch 2.5 and later).

Not a part of the package `muster`, whose import loads its library: every `import torch` comes by here. Nothing of muster is loaded before a process group of this
backend is made, and nothing here raises: an exception would break `import torch`. What else a rank lacks to use torch.distributed is seen to, too.
"""

from __future__ import annotations

import functools
import os


def register() -> None:
    """Makes `init_process_group("muster")` possible. Does nothing where that is so already, or where torch has no torch.distributed. Never raises."""
    try:
        import torch
        import torch.distributed as dist

        if not dist.is_available() or hasattr(dist.Backend, "MUSTER"):
            return
        getattr(dist.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", set()).add("muster")  # it has a flight recorder
        _do_without_libuv(dist, torch.__version__.partition("+")[2])
        _adapt_functions(dist, dist.distributed_c10d)
        try:
            dist.Backend.register_backend("muster", _create, extended_api=True, devices=["cpu", "cuda"] if _has_gpu(torch) else ["cpu"])
        except TypeError:  # torch 1.13: a backend has all devices
            dist.Backend.register_backend("muster", _create, extended_api=True)
    except Exception as error:  # noqa: BLE001  see above
        import warnings

        warnings.warn(f'the torch.distributed backend "muster" could not be registered: {error!r}', RuntimeWarning, stacklevel=2)


def _has_gpu(torch) -> bool:
    """Returns whether tensors may lie on a GPU here: torch moves what it gathers (ShardedTensor.gather) to the first device that is not the CPU. Asks no driver, whose
    state would not survive a fork."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not torch.backends.cuda.is_built() or visible is not None and visible.strip() in ("", "-1"):
        return False
    return any(os.path.exists(file) for file in ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/dxg"))  # a machine's, a Jetson's, WSL's


def _do_without_libuv(dist, build: str) -> None:
    """Sets USE_LIBUV=0 in a rank of a world where it is unset and nothing else works: since 2.4 torch's store wants libuv, and raises where it was built without, as
    Debian's is. Which torch that is only its store tells; PyTorch's own builds, whose names are cpu, cu132 and so on, have it."""
    if "MASTER_ADDR" not in os.environ or "USE_LIBUV" in os.environ or build.startswith(("cpu", "cu", "rocm", "xpu")):
        return
    try:
        import datetime

        dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=datetime.timedelta(seconds=1), use_libuv=True)
    except TypeError:  # before torch 2.2: there is no libuv
        pass
    except Exception as error:  # noqa: BLE001  whatever else is wrong with a store, its user is told by the store
        if "without libuv" in str(error):
            os.environ["USE_LIBUV"] = "0"


def _adapt_functions(dist, c10d) -> None:
    """Makes two functions of older torch's do for this backend what they do for gloo: monitored_barrier refuses any other by name, and before torch 2
    destroy_process_group ends no group, so that one that is kept holds the store's server."""
    monitored, destroy = c10d.monitored_barrier, c10d.destroy_process_group

    @functools.wraps(monitored)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        chosen = c10d._get_default_group() if group is None or group is getattr(dist.group, "WORLD", None) else group
        if not hasattr(chosen, "is_of_muster"):
            return monitored(group, timeout, wait_all_ranks)
        return chosen.monitored_barrier(timeout, wait_all_ranks)

    @functools.wraps(destroy)
    def destroy_process_group(group=None):
        ended = list(c10d._pg_map) if group is None or group is dist.group.WORLD else [group]
        destroy(group)
        for each in ended:
            if hasattr(each, "is_of_muster"):
                each.shutdown()

    dist.monitored_barrier = c10d.monitored_barrier = monitored_barrier
    if hasattr(c10d, "_pg_map"):
        dist.destroy_process_group = c10d.destroy_process_group = destroy_process_group


def _create(options, backend_options=None):
    """Called by torch.distributed on the members of a group that is being made."""
    from muster.distributed.process_group import create

    return create(options, backend_options)
