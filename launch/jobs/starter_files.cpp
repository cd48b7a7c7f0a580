#include "launch/jobs/starter_files.hpp"

#include <fmt/format.h>

namespace muster {

namespace {

constexpr std::string_view script = R"PY(import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")  # "nccl" on GPUs
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()  # averages the gradients over the ranks
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} is done")
dist.barrier()
)PY";

constexpr std::string_view resuming = R"PY("""Trains over several jobs: muster submit --chain 3 -- python3 resume.py

Before the job's time is up muster sends SIGUSR1. The ranks then finish their step, rank 0 saves, and all end with 75: the next job goes on from there.
"""
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from muster.checkpoint import Checkpoint, exit_saved

asked = []
signal.signal(signal.SIGUSR1, lambda number, frame: asked.append(number))
dist.init_process_group("gloo")  # "nccl" on GPUs
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checkpoint = Checkpoint("checkpoints")  # a folder that all nodes and jobs see
step = 0
if found := checkpoint.load():
    step, state = found
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
print(f"rank {dist.get_rank()} begins at step {step}", flush=True)
while step < 300:
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    step += 1
    stop = torch.tensor([len(asked)])  # the signal need not reach all ranks in the same step: they agree
    dist.all_reduce(stop, op=dist.ReduceOp.MAX)
    if stop.item() or step % 100 == 0:
        if dist.get_rank() == 0:
            checkpoint.save(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        dist.barrier()
    if stop.item():
        exit_saved()
if dist.get_rank() == 0:
    print(f"{step} steps are done")
)PY";

}  // namespace

std::string_view starter_script() noexcept {
    return script;
}

std::string_view resuming_script() noexcept {
    return resuming;
}

std::string starter_job_file(std::string const& site, bool with_gpus) {
    return fmt::format(
        R"TOML(# The job of this folder. `muster submit` submits it; options on the command line go before what is written here.
[job]
site = "{}"      # muster script --help names the options; each can be a key here
{}
time = "10min"
job-name = "train"
# account = "…"
# queue = "…"
command = ["python3", "train.py"]
# chain = 3                 # of resume.py: three jobs, each going on from the last checkpoint

# Variables of the ranks.
[job.env]
OMP_NUM_THREADS = "1"
)TOML",
        site,
        with_gpus ? "gpus = 2                    # one rank for each"
                  : "ranks = 2                   # without GPUs: there are none");
}

std::vector<std::string> starter_script_words(std::string const& site, bool with_gpus) {
    return {"--site",
            site,
            with_gpus ? "--gpus" : "--ranks",
            "2",
            "--time",
            "10min",
            "--job-name",
            "train",
            "--env",
            "OMP_NUM_THREADS=1",
            "--",
            "python3",
            "train.py"};
}

}  // namespace muster
