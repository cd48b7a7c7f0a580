"""Registers the backend "muster" with torch.distributed, where `import torch` finds it (entry point torch.backends, torch 2.5 and later).

Not a part of the package `muster`, whose import loads its library: every `import torch` comes by here. Nothing of muster is loaded before a process group of this
backend is made, and nothing here raises: an exception would break `import torch`.
"""

from __future__ import annotations


def register() -> None:
    """Makes `init_process_group("muster")` possible. Does nothing where that is so already, or where torch has no torch.distributed. Never raises."""
    try:
        import torch.distributed as dist

        if not dist.is_available() or hasattr(dist.Backend, "MUSTER"):
            return
        try:
            dist.Backend.register_backend("muster", _create, extended_api=True, devices=["cpu", "cuda"])
        except TypeError:  # torch 1.13: a backend has all devices
            dist.Backend.register_backend("muster", _create, extended_api=True)
    except Exception as error:  # noqa: BLE001  see above
        import warnings

        warnings.warn(f'the torch.distributed backend "muster" could not be registered: {error!r}', RuntimeWarning, stacklevel=2)


def _create(options, backend_options=None):
    """Called by torch.distributed on the members of a group that is being made."""
    from muster.distributed.process_group import create

    return create(options, backend_options)
