"""Serves `horovod.torch.compression` by `muster.torch.compression`."""

import sys

import muster.torch.compression

sys.modules[__name__] = muster.torch.compression
