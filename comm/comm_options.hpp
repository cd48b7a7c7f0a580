// How a communicator is to be made.
#pragma once

#include <cstddef>
#include <string>

#include "base/units.hpp"

namespace muster {

struct comm_options {
    /// "self", "mpi", or "" for the first in the table that can serve this world.
    std::string backend;

    /// How long an operation may take from wait() on before it is given up; 0 is without end.
    duration deadline{1800.0};

    /// The program calls MPI from several threads at once (a communicator itself still takes one call at a time). Costs latency.
    bool several_threads = false;

    /// In worlds of up to so many ranks the mpi backend exchanges the pieces of an allreduce directly, each rank with each
    /// (fastest, and reduced in the order of the ranks); in larger ones it leaves the algorithm to MPI. The same on all ranks.
    int direct_ranks = 16;
};

}  // namespace muster
