// Finds, from its variables, whether this process is a task of another launcher: `srun muster run` would start every rank once
// for each task.
#pragma once

#include <optional>
#include <string>

#include "base/environment.hpp"

namespace muster {

/// Renames variables of an older Slurm (SLURM_JOBID, SLURM_PACK_SIZE, …_PACK_GROUP_0) to their names since 20.02. Pure.
environment with_present_slurm_names(environment variables);

/// One of several tasks.
struct outer_task {
    std::string launcher;  ///< "srun", "flux run", "mpirun", "mpiexec", "muster run"
    int number = 0;
    int count = 0;
    bool operator==(outer_task const&) const = default;
};

/// Returns nothing for a process that stands alone: a batch script, a shell of salloc or `srun --pty`, a step of one task.
/// Variables that contradict each other are left over from elsewhere and ignored. Pure.
std::optional<outer_task> find_outer_task(environment const& variables);

/// Throws errc::usage in such a task, and says what to do.
void refuse_outer_task(environment const& variables);

/// Returns this process' variables without those of another job's task. sbatch, salloc and qsub -V pass on the variables of the
/// task that calls them. `slurm_step`, "7.0" or "7.batch", is the step in which Slurm started this process: if the variables name
/// another one, those of the step and of its tasks go; if they name another job (a shell of salloc within a job), so does what
/// slurmd set for that job. `script` are the variables that the job's script was started with: what they say about a launcher's
/// task does not concern this job. Either may be empty: not known. Pure.
environment without_submitters_task(environment variables, std::string const& slurm_step, environment const& script = {});

/// Returns the variables with which the scheduler started this job's script or interactive shell; empty if they are not visible,
/// or if it runs on another node. Looks at processes: Slurm's is SLURM_TASK_PID in a batch step, PBS's the child of pbs_mom.
environment job_script_variables(environment const& variables, std::string const& slurm_step);

/// Returns the step in which Slurm started this process, from the title of its slurmstepd; empty if there is no step, or it is
/// not visible.
std::string slurm_step_of(environment const& variables);

}  // namespace muster
