"""The last of three ranks is lost while the second makes a group with it. The second hears of it at once, and both others go on and make groups."""

import os
import signal

import torch
import torch.distributed as dist

import muster.distributed
import muster.elastic

muster.elastic.announce()
dist.init_process_group("muster")
rank = dist.get_rank()
try:
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        dist.new_group([1, 2])
    dist.all_reduce(torch.ones(1))
    raise AssertionError("nobody was missed")
except RuntimeError as error:
    muster.distributed.reform(error)
alone, both = (dist.new_group(ranks) for ranks in ([1], [0, 1]))
total = torch.ones(1)
dist.all_reduce(total, group=both)
if rank == 1:
    dist.all_reduce(total, group=alone)
print(f"member {rank} ends: rank {dist.get_rank()} of {dist.get_world_size()}, total {int(total)}", flush=True)
dist.destroy_process_group()
