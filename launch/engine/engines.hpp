// The engines that can start ranks or their shims on several nodes: srun, mpirun, mpiexec and muster's own start.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/engine/mpi_family.hpp"

namespace muster {

// Slurm's srun as an engine: one job step, with one shim for each task.

/// See engine_row. MPICH programs get PMI-2, all others PMIx.
std::optional<std::string> srun_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command srun_command(engine_job const& job, scheduler_sources const& sources);
std::vector<std::string> srun_cancel(std::string const& step);

/// Returns the plugins of `srun --mpi=list`: "pmix", "pmix_v4", "pmi2", "none" …, in all forms that Slurm has printed. Pure.
std::vector<std::string> parse_mpi_list(std::string_view text);

/// Sets variables with orders for the srun by which another launcher starts its daemons, one on each node except for `left_out`.
/// That srun must neither wait for the step that we may be in, nor read tasks and GPUs from the job's variables. Pure.
void order_daemons_step(engine_job const& job, std::string const& left_out, environment& variables);

/// Removes the variables by which sbatch, salloc, an outer srun or the user would give orders to an srun that has its own, of any
/// version from 20.02 to 26.05. Keeps those that only inform (SLURM_JOB_ID, SLURM_JOB_NODELIST …). The ranks get all of them:
/// muster sends them the job's environment itself, not through srun. Pure.
void unset_srun_orders(environment& variables);

// Open MPI's mpirun (4 and 5) and PRRTE's prterun as an engine.

/// A program that identifies itself as Open MPI's or PRRTE's.
struct mpirun_program {
    std::string name;      ///< "mpirun", or its path if it is not in a system folder
    bool prrte = false;    ///< Open MPI 5, prterun: other names for the same options
    bool open_mpi = true;  ///< false: prterun
    program_version version;
    bool operator==(mpirun_program const&) const = default;
};

/// Reads what `NAME --version` printed; returns nothing for another maker's mpirun.
std::optional<mpirun_program> read_mpirun_version(std::string const& name, std::string_view said);

/// See engine_row.
std::optional<std::string> mpirun_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command mpirun_command(engine_job const& job, scheduler_sources const& sources);

/// Returns the command line of a program that was found; `as_root`: an option tells Open MPI that this is intended. Pure.
engine_command mpirun_command_of(mpirun_program const& program, engine_job const& job, bool as_root);

// The mpiexec of MPICH (Hydra) and of HPE's PALS as an engine.

struct mpiexec_program {
    enum class maker { hydra, pals };
    maker from = maker::hydra;
    std::string name;  ///< the name to call it by
    program_version version;
    std::vector<std::string> launchers;  ///< Hydra's: "ssh", "slurm" …
    bool operator==(mpiexec_program const&) const = default;
};

/// Reads what `NAME --version` printed; returns nothing if that is neither.
std::optional<mpiexec_program> read_mpiexec_version(std::string const& name, std::string_view said);

/// See engine_row.
std::optional<std::string> mpiexec_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command mpiexec_command(engine_job const& job, scheduler_sources const& sources);

/// Returns the one on PATH, if it is Hydra's or PALS'.
std::optional<mpiexec_program> find_mpiexec(scheduler_sources const& sources);

// muster's own start of ranks over several hosts, by ssh or PBS' TM, as an engine.

/// See engine_row.
std::optional<std::string> remote_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command remote_command_line(engine_job const& job, scheduler_sources const& sources);

}  // namespace muster
