"""Serves `horovod.torch.elastic.state` by `muster.torch.elastic.state`."""

import sys

import muster.torch.elastic.state

sys.modules[__name__] = muster.torch.elastic.state
