// What the engines' command lines have in common.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/engine/engine_table.hpp"

namespace muster {

struct program_version {
    int major = 0;
    int minor = 0;
    auto operator<=>(program_version const&) const = default;
};

/// The first "N.N" in what a program says of itself ("slurm-wlm 22.05.8"), or nothing.
std::optional<program_version> find_version(std::string_view text);

/// Which launchers an MPI library understands.
enum class mpi_family {
    none,      ///< no MPI, or one that is loaded only at run time (mpi4py)
    open_mpi,  ///< PMIx
    mpich,     ///< PMI-1 and PMI-2: MPICH, MVAPICH, Intel MPI
    cray,      ///< Cray MPICH: PMI-2 and Cray's own
};
/// By the library's path or name. Open MPI has been libmpi.so.20 and more since its version 2; the MPICH family agreed on 12.
mpi_family family_of(std::string_view library) noexcept;

/// What the job's program is linked with.
struct program_mpi {
    mpi_family family = mpi_family::none;
    std::string library;  ///< "libmpi.so.40"
    bool operator==(program_mpi const&) const = default;
};
program_mpi find_mpi(engine_job const& job);

/// Whether that family's ranks would come up alone below an engine that speaks so.
bool is_foreign(mpi_family family, wire_up speaks) noexcept;
/// The engines that speak with it, for advice: "--engine mpiexec (MPICH's Hydra)".
std::string_view engines_for(mpi_family family) noexcept;

/// One host a rank, in order of rank; of a probe, each used node once.
std::vector<std::string> rank_hosts(engine_job const& job);

/// Ranks (of a probe: shims) and the nodes they are on.
int ranks_of(engine_job const& job);
std::vector<int> used_nodes(engine_job const& job);

/// The number that all used nodes have in common, or nothing.
std::optional<int> ranks_on_each(engine_job const& job);
/// Of GPUs, only those that the scheduler knows of and can be asked for.
std::optional<int> gpus_on_each(engine_job const& job);

/// Why a step cannot be on all these nodes: a step of one command, srun's own or one that mpirun or mpiexec makes for its
/// daemons, lies in one component of a heterogeneous Slurm job, the first unless told otherwise. Nothing in any other job.
std::optional<std::string> beyond_first_component(engine_job const& job, environment const& variables);

/// The first line that a command printed, to errors first.
std::string first_line(command_output const& said);

/// Lines for a file.
std::string as_lines(std::vector<std::string> const& lines);

}  // namespace muster
