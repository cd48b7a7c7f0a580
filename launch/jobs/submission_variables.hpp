// The variables that a job is submitted with: those of this process, except for what the job around it set.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// sbatch, salloc and qsub -V pass on every variable, and the scheduler sets only those that the new job asks for. So this
/// removes the numbers of an outer chain and array, its artifact folders, the variables of an outer rank and, within a Slurm or
/// PBS job, everything that the scheduler set for that job. It keeps what configures the scheduler's commands. Pure.
environment submission_variables(environment variables);

}  // namespace muster
