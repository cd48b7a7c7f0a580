// Finds the variables in a Slurm job that are another job's: sbatch and salloc pass on what the job that they are called in has.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

namespace muster {

/// Names with their right values, or nothing where this job has no such variable. `job` is scontrol's record of SLURM_JOB_ID; where it
/// was not found only the components are judged. Variables of GPUs are another job's where Slurm has set them and this job has none on
/// this node (SLURMD_NODENAME); where it has some, slurmd has set them anew. Pure.
std::vector<std::pair<std::string, std::optional<std::string>>> slurm_corrections(environment const& variables,
                                                                                  slurm_job const& job, bool step);

}  // namespace muster
