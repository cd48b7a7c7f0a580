// The task of another launcher that this process is, found in its variables: `srun muster run` would start every rank once for each task.
#pragma once

#include <optional>
#include <string>

#include "base/environment.hpp"

namespace muster {

/// The variables of Slurm as it has called them since 20.02, where an older one sets others: SLURM_JOBID, SLURM_PACK_SIZE, …_PACK_GROUP_0. Pure.
environment with_present_slurm_names(environment variables);

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

/// The variables of this process without those that the job was submitted with and that speak of another job's task. sbatch, salloc
/// and qsub -V pass on the variables of the task that they are called in. `slurm_step`, "7.0" or "7.batch", is the step that Slurm
/// has started this process in: if the variables speak of another one, those of the step and of its tasks go; if they speak of
/// another job (a shell of salloc within a job), also what slurmd has told of that one. `script` are the variables that the job's own
/// script was started with: what they say of a launcher's task is not this job's. Either may be empty: not known. Pure.
environment without_submitters_task(environment variables, std::string const& slurm_step, environment const& script = {});

/// The variables that the scheduler has started this job's script or interactive shell with; empty: not to be seen, or this process
/// is not on the node where it runs. Looks at processes: Slurm's is SLURM_TASK_PID in a batch step, PBS's the child of pbs_mom.
environment job_script_variables(environment const& variables, std::string const& slurm_step);

/// The step that Slurm has started this process in, from the title of its slurmstepd; empty: none, or not to be seen.
std::string slurm_step_of(environment const& variables);

}  // namespace muster
