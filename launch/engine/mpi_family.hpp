// Finds the family of an MPI library, and the engines that its ranks can meet under.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "launch/engine/engine_job.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

// Finds the version in what a program prints about itself.

struct program_version {
    int major = 0;
    int minor = 0;
    auto operator<=>(program_version const&) const = default;
};

/// Returns the first "N.N" in what a program prints about itself ("slurm-wlm 22.05.8"), or nothing.
std::optional<program_version> find_version(std::string_view text);

// The MPI that a Python program loads by mpi4py: that Python is asked, since no file is linked with it.

/// Returns what the MPI library that the job's Python loads by mpi4py calls itself ("MPICH Version: 5.0.2"). Returns "" if the
/// job's command is no Python, if neither its words nor its script contain "mpi4py", or if Python does not answer. Starts that
/// Python once, only if mpi4py is named.
std::string find_python_mpi(engine_job const& job, scheduler_sources const& sources);

/// MPI libraries by the launchers that they work with.
enum class mpi_family {
    none,      ///< no MPI, or one loaded only at run time
    open_mpi,  ///< PMIx
    mpich,     ///< PMI-1 and PMI-2: MPICH, MVAPICH, Intel MPI
    cray,      ///< Cray MPICH: PMI-2 and Cray's own protocol
};
/// Finds the family by the library's path or name. Open MPI has been libmpi.so.20 and more since its version 2; the MPICH family
/// agreed on 12.
mpi_family family_of(std::string_view library) noexcept;

/// Finds the family by MPI_Get_library_version: "Open MPI v4.1.4, …", "MPICH Version: 5.0.2".
mpi_family family_that_says(std::string_view version) noexcept;

/// Says which MPI the job's program is linked with, or loads by mpi4py.
struct program_mpi {
    mpi_family family = mpi_family::none;
    std::string library;  ///< "libmpi.so.40", or what it calls itself
    bool operator==(program_mpi const&) const = default;
};
program_mpi find_mpi(engine_job const& job, scheduler_sources const& sources);

/// Returns whether ranks of that family would come up alone under such an engine.
bool is_foreign(mpi_family family, wire_up speaks) noexcept;
/// Returns the engines that work with it, for advice: "--engine mpiexec (MPICH's Hydra)".
std::string_view engines_for(mpi_family family) noexcept;

}  // namespace muster
