// Finds out whether a living process uses MPI. A loaded library says little: PyTorch, HDF5 and mpi4py load one in programs that
// never call it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The result of one look at a process.
struct mpi_sight {
    std::string library{};  ///< the path of the MPI library in it; empty: no library, and the other fields mean nothing
    std::optional<bool> initialised{};  ///< whether MPI_Init has begun, if the library shows it (Open MPI 2.1 and later)
    bool linked = false;    ///< the program itself is linked to MPI, or is Python with mpi4py's module; checked only if
                            ///< `initialised` is not known
    bool has_pmi1 = false;  ///< its variables name a PMI-1 server; checked only if `initialised` is not known
    bool operator==(mpi_sight const&) const = default;

    /// Returns whether it uses MPI, as far as visible. If the library does not show it, a program that is linked to MPI counts as
    /// using it.
    bool uses_mpi() const noexcept { return !library.empty() && initialised.value_or(linked); }

    /// Does the same for a program that one of muster's PMI-1 servers waits for: an MPI that can reach the server and has not
    /// connected was not initialised.
    bool uses_mpi_elsewhere() const noexcept { return uses_mpi() && (initialised || !has_pmi1); }
};

/// A rank that has MPI and has not used it yet is inspected again when it writes something this much later.
inline constexpr std::chrono::seconds mpi_look_again_after{1};

/// Inspects a living process of this user below this one. One that is not readable, or ends meanwhile, has no library, and
/// neither has muster-stage if it runs another program. Never throws.
mpi_sight look_for_mpi(pid_t pid);

/// Says where a library lies, according to /proc/PID/maps: the path of the first MPI library, the address of its file's
/// beginning, and whether mpi4py's module is there, too.
struct mapped_mpi {
    std::string path{};
    std::uint64_t address = 0;
    bool by_mpi4py = false;
    bool operator==(mapped_mpi const&) const = default;
};

/// Pure. Accepts any text.
std::optional<mapped_mpi> mpi_in_maps(std::string_view maps);

// Finds what an MPI library prints when a rank aborts the world.

/// Rank `rank` has called MPI_Abort with `code`.
struct abort_notice {
    int rank = -1;
    int code = 0;
    bool operator==(abort_notice const&) const = default;
};

/// Returns the first notice in these lines, of MPICH's family ("application called MPI_Abort(MPI_COMM_WORLD, 42) - process 5") or
/// of Open MPI ("MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD", then "with errorcode 42"). Returns nothing for
/// other communicators than the world, in which the number is not the rank's. Pure.
std::optional<abort_notice> find_abort_notice(std::string_view lines);

}  // namespace muster
