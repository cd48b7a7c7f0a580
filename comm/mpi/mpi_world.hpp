// The rendezvous of ranks over MPI, and the world that it makes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/backend/comm_options.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

/// Traffic of its own for a group of ranks, errors being returned, and the records of its ranks, in their order.
struct mpi_world {
    unique_comm comm;
    std::vector<world_record> ranks;
    bool crowded = false;  ///< the ranks of this node, in this world or not, share processors
};

/// Collective over MPI's world, or over options.members of it. Checked on all ranks (check_world); numbered by the identities.
/// Throws what check_world does, mpi_error, errc::unavailable if MPI numbers the members otherwise than the launcher does, and errc::timeout after options.deadline, MPI being stuck then.
mpi_world rendezvous(mpi_runtime& runtime, identity const& who, comm_options const& options);

/// Collective over `ranks` (of `whole`, distinct, this rank `own` among them). Throws mpi_error and errc::timeout.
mpi_world rendezvous_of_some(mpi_runtime& runtime, mpi_world const& whole, std::span<int const> ranks, int own,
                             comm_options const& options);

}  // namespace muster::detail
