// Finds what an MPI library prints when a rank aborts the world.
#pragma once

#include <optional>
#include <string_view>

namespace muster {

/// Rank `rank` has called MPI_Abort with `code`.
struct abort_notice {
    int rank = -1;
    int code = 0;
    bool operator==(abort_notice const&) const = default;
};

/// The first notice in these lines, of MPICH's family ("application called MPI_Abort(MPI_COMM_WORLD, 42) - process 5") or of Open
/// MPI ("MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD", then "with errorcode 42"). Of other communicators than
/// the world the number is not the rank's: nothing. Pure.
std::optional<abort_notice> find_abort_notice(std::string_view lines);

}  // namespace muster
