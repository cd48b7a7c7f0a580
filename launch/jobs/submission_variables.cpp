#include "launch/jobs/submission_variables.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "pmix/scrub.hpp"

namespace muster {

namespace {

/// Muster's job scripts set these.
constexpr std::array of_scripts{"MUSTER_CHAIN_START", "MUSTER_CHAIN_LINK",    "MUSTER_CHAIN_LENGTH",
                                "MUSTER_ARRAY_INDEX", "MUSTER_ARTIFACTS_DIR", "MUSTER_SYNC_DIR"};

/// Users and sites set these for Slurm's commands, according to the sections INPUT ENVIRONMENT VARIABLES of their manuals.
constexpr std::array settings_of_slurm{"SLURM_CONF",  "SLURM_CONF_SERVER", "SLURM_CLUSTERS",    "SLURM_TIME_FORMAT",
                                       "SLURM_JWT",   "SLURM_DEBUG_FLAGS", "SLURM_EXIT_ERROR",  "SLURM_EXIT_IMMEDIATE",
                                       "SLURM_UMASK", "SLURM_SACK_KEY",    "SLURM_SACK_SOCKET", "SLURM_MPI_TYPE"};

constexpr std::array lists_of_gpus{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

bool is_one_of(std::string_view name, auto const& names) {
    return std::ranges::find(names, name) != names.end();
}

/// Returns whether the scheduler set a variable for the job around this process. qsub sets PBS_O_* anew each time.
bool is_of_outer_job(std::string_view name, bool in_slurm, bool in_pbs) {
    if (in_slurm && (name.starts_with("SLURM_") || name.starts_with("SLURMD_"))) return !is_one_of(name, settings_of_slurm);
    if (in_pbs && name.starts_with("PBS_"))
        return !is_one_of(name, std::array{"PBS_CONF_FILE", "PBS_EXEC", "PBS_HOME", "PBS_SERVER", "PBS_DEFAULT"});
    return false;
}

}  // namespace

environment submission_variables(environment variables) {
    bool const in_slurm = variables.has("SLURM_JOB_ID"), in_pbs = variables.has("PBS_JOBID");
    bool const gpus_told =
        variables.has("SLURM_JOB_GPUS") || variables.has("SLURM_STEP_GPUS") || in_pbs || variables.has("FLUX_URI");
    pmix::scrub_inherited(variables);
    std::vector<std::string> outer(of_scripts.begin(), of_scripts.end());
    if (gpus_told) outer.insert(outer.end(), lists_of_gpus.begin(), lists_of_gpus.end());
    for (auto const& [name, value] : variables)
        if (is_of_outer_job(name, in_slurm, in_pbs)) outer.push_back(name);
    for (auto const& name : outer) variables.unset(name);
    return variables;
}

}  // namespace muster
