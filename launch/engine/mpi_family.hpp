// The family of an MPI library tells which engines its ranks can meet under.
#pragma once

#include <string>
#include <string_view>

#include "launch/engine/engine_job.hpp"

namespace muster {

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

}  // namespace muster
