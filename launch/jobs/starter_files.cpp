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

}  // namespace

std::string_view starter_script() noexcept {
    return script;
}

std::string starter_job_file(std::string const& site) {
    return fmt::format(
        R"TOML(# The job of this folder. `muster submit` submits it; options on the command line go before what is written here.
[job]
site = "{}"      # muster script --help names the options; each can be a key here
gpus = 2                    # one rank for each
time = "10min"
job-name = "train"
# account = "…"
# queue = "…"
command = ["python3", "train.py"]

# Variables of the ranks.
[job.env]
OMP_NUM_THREADS = "1"
)TOML",
        site);
}

std::vector<std::string> starter_script_words(std::string const& site) {
    return {"--site", site,      "--gpus",  "2", "--time", "10min", "--job-name", "train", "--env", "OMP_NUM_THREADS=1",
            "--",     "python3", "train.py"};
}

}  // namespace muster
