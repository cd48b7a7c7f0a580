"""Serves `horovod.torch.optimizer` by `muster.torch.optimizer`."""

import sys

import muster.torch.optimizer

sys.modules[__name__] = muster.torch.optimizer
