// The backend over MPI. All that the rest of comm uses of this folder; in a build without MPI it refuses every world.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

std::optional<std::string> mpi_unavailable(identity const& who, comm_options const& options);

/// Collective. Initialises MPI unless it is; the last backend of those finalises it. See communicator::create for what is thrown.
/// SIGPIPE, where the program leaves it to the system, does nothing from then on: MPI's connections to a rank that ended would
/// otherwise end this process too. Programs that it starts are as before.
std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options);

/// The size of MPI's world if the program has initialised MPI and not finalised it, else 0. Not collective.
int running_mpi_world_size() noexcept;

}  // namespace muster
