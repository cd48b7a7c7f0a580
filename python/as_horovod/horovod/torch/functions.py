"""Serves `horovod.torch.functions` by `muster.torch.functions`."""

import sys

import muster.torch.functions

sys.modules[__name__] = muster.torch.functions
