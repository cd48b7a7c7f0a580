// Slurm's srun as an engine: one job step, one shim a task.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/engine/engine_table.hpp"

namespace muster {

/// See engine_row. PMI-2 is what MPICH programs get, PMIx all others.
std::optional<std::string> srun_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command srun_command(engine_job const& job, scheduler_sources const& sources);
std::vector<std::string> srun_cancel(std::string const& step);

/// The plugins of `srun --mpi=list`: "pmix", "pmix_v4", "pmi2", "none" …, in all the forms that Slurm has printed them. Pure.
std::vector<std::string> parse_mpi_list(std::string_view text);

/// Orders, as variables, for the srun by which another launcher starts its daemons: one on each node but `left_out`. It must
/// neither wait for the step that we may be in, nor learn of tasks and GPUs from the job's variables. Pure.
void order_daemons_step(engine_job const& job, std::string const& left_out, environment& variables);

/// Takes out the variables by which sbatch, salloc, an outer srun or the user would give orders to an srun that has its own, of any
/// version from 20.02 to 26.05. Those that only tell (SLURM_JOB_ID, SLURM_JOB_NODELIST …) stay. The ranks have all of them: muster
/// sends them the job's environment itself, past srun. Pure.
void unset_srun_orders(environment& variables);

}  // namespace muster
