"""Serves `horovod.torch.elastic.sampler` by `muster.torch.elastic.sampler`."""

import sys

import muster.torch.elastic.sampler

sys.modules[__name__] = muster.torch.elastic.sampler
