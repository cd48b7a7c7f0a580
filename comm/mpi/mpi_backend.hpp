// The backend over MPI. The rest of comm uses nothing else of this folder; in a build without MPI it refuses every world.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

std::optional<std::string> mpi_unavailable(identity const& who, comm_options const& options);

/// Makes the backend. Collective. Initialises MPI if necessary; the last such backend finalises it. Throws as
/// communicator::create. From then on SIGPIPE, if the program leaves it to the system, does nothing: MPI's connections to a rank
/// that ended would otherwise end this process too. Programs that it starts keep the default.
std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options);

/// Returns the size of MPI's world if the program has initialised MPI and not finalised it, else 0. Not collective.
int running_mpi_world_size() noexcept;

}  // namespace muster
