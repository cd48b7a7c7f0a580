"""Serves `horovod.torch.sync_batch_norm` by `muster.torch.sync_batch_norm`."""

import sys

import muster.torch.sync_batch_norm

sys.modules[__name__] = muster.torch.sync_batch_norm
