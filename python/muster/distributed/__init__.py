"""Provides the torch.distributed backend "muster": process groups whose collectives are muster's.

    torch.distributed.init_process_group("muster")

DistributedDataParallel, FullyShardedDataParallel, DTensor and whatever else is made of torch.distributed then works as over gloo. From torch 2.5 on the backend is
there by itself where this package is installed (an entry point of `torch.backends`). For an older torch import this module, or `muster.torch`, first; or start a
script that is not to be changed with `python3 -m muster.distributed train.py`.
"""

from _muster_torch_backend import register

register()

from muster.distributed.process_group import MusterProcessGroup  # noqa: E402
from muster.distributed.reforming import reform  # noqa: E402

__all__ = ["MusterProcessGroup", "reform", "register"]
