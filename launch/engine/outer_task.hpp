// The task of another launcher that this process is, found in its variables: `srun muster run` would start every rank once for each task.
#pragma once

#include <optional>
#include <string>

#include "base/environment.hpp"

namespace muster {

/// One of several tasks.
struct outer_task {
    std::string launcher;  ///< "srun", "flux run", "mpirun", "mpiexec", "muster run"
    int number = 0;
    int count = 0;
    bool operator==(outer_task const&) const = default;
};

/// Nothing for a process that stands alone: a batch script, a shell of salloc or `srun --pty`, a step of one task. Variables that
/// contradict each other are left over from elsewhere and do not count. Pure.
std::optional<outer_task> find_outer_task(environment const& variables);

/// Throws errc::usage in such a task, with the way out.
void refuse_outer_task(environment const& variables);

/// sbatch and salloc pass on the variables of the task that they were called in. If `slurm_step`, "7.0" or "7.batch", is not the
/// step that the variables speak of, those of the step and of its tasks are taken out. Pure.
environment without_submitters_task(environment variables, std::string const& slurm_step);

/// The step that Slurm has started this process in, from the title of its slurmstepd; empty: none, or not to be seen.
std::string slurm_step_of(environment const& variables);

}  // namespace muster
