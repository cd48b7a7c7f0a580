// The variables that a job is submitted with: those of this process without what a job around it has set for itself.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// sbatch, salloc and qsub -V pass on every variable, and the scheduler sets anew only those of what the new job asks for. So the
/// numbers of an outer chain and array, its artifact folders, the variables of an outer rank and, within a Slurm or PBS job, all that
/// the scheduler has told of that job are taken out; what configures the scheduler's commands stays. Pure.
environment submission_variables(environment variables);

}  // namespace muster
