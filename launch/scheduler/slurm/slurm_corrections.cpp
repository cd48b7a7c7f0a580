#include "launch/scheduler/slurm/slurm_corrections.hpp"

#include <array>
#include <string_view>

#include "launch/scheduler/slurm/slurm_components.hpp"

namespace muster {

namespace {

/// What slurmd sets in a job that has GPUs, and what sbatch and salloc set in one that asks for them.
constexpr std::array of_gpus{"SLURM_JOB_GPUS",       "SLURM_STEP_GPUS",     "SLURM_GPUS_ON_NODE",   "CUDA_VISIBLE_DEVICES",
                             "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",  "ZE_AFFINITY_MASK",     "SLURM_GPUS",
                             "SLURM_GPUS_PER_NODE",  "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET"};

/// Whether Slurm has set any of them: a user's CUDA_VISIBLE_DEVICES alone is a wish.
bool slurm_told_gpus(environment const& variables) {
    return variables.has("SLURM_JOB_GPUS") || variables.has("SLURM_STEP_GPUS") || variables.has("SLURM_GPUS_ON_NODE");
}

}  // namespace

std::vector<std::pair<std::string, std::optional<std::string>>> slurm_corrections(environment const& variables,
                                                                                  slurm_job const& job, bool step) {
    std::vector<std::pair<std::string, std::optional<std::string>>> corrections;
    auto const drop = [&](std::string const& name) { corrections.emplace_back(name, std::nullopt); };
    bool const others_components = variables.has("SLURM_HET_SIZE") && count_slurm_components(variables) == 1;
    bool const others_array = job.found && job.array_job != variables.get_or("SLURM_ARRAY_JOB_ID", job.array_job);
    for (auto const& [name, value] : variables)
        if ((others_components && (name.starts_with("SLURM_HET_") || name.find("_HET_GROUP_") != name.npos)) ||
            (others_array && name.starts_with("SLURM_ARRAY_")))
            drop(name);
    if (job.found && job.restarts == 0 && variables.has("SLURM_RESTART_COUNT")) drop("SLURM_RESTART_COUNT");

    auto const node = variables.get_or("SLURMD_NODENAME", "");
    auto const here = job.gpus.find(node);
    bool const has_none = here == job.gpus.end() ? !job.gpus.empty() : here->second == 0;
    if (step || node.empty() || !job.found || job.shares_gpus || !has_none || !slurm_told_gpus(variables)) return corrections;
    for (auto const* name : of_gpus)
        if (variables.has(name)) drop(name);
    return corrections;
}

}  // namespace muster
