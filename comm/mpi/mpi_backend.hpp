// The backend over MPI. In a build without MPI it is a row of the table that says so.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"

namespace muster {

std::optional<std::string> mpi_unavailable(identity const& who, comm_options const& options);

/// Collective. Initialises MPI unless it is; the last backend of those finalises it. See communicator::create for what is thrown.
/// SIGPIPE, where the program leaves it to the system, does nothing from then on: MPI's connections to a rank that fell would
/// otherwise end this process too. Programs that it starts are as before.
std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options);

/// The size of MPI's world if the program has initialised MPI and not finalised it, else 0. Not collective.
int running_mpi_world_size() noexcept;

}  // namespace muster
