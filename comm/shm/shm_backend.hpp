// The backend over shared memory. Serves worlds all of whose ranks are on one node, without MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Says why shm cannot serve this world, judging by the identity; nothing if it can. `mpi_world_size`: of the MPI that the
/// program itself runs, or 0. Pure.
std::optional<std::string> shm_unavailable(identity const& who, comm_options const& options, int mpi_world_size);

/// Collective, within options.deadline. Throws comm_error naming the ranks that do not come, end meanwhile, or contradict each
/// other (see shm_rendezvous), and errc::system.
///
/// Nothing of it has a name in the file system, so nothing is left there. Works without a separate thread: within calls.
/// Collectives finish in the order of their start. A communicator that is destroyed waits for nobody; a rank that needs it later
/// gets an error.
std::unique_ptr<collective_backend> make_shm_backend(identity const& who, comm_options const& options, int mpi_world_size);

}  // namespace muster
