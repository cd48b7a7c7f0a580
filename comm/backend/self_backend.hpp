// The backend for a world of one rank. Serves single-rank programs and tests, and is the example of a backend.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Pure. `mpi_world_size` is that of the program's own MPI, 0 if it runs none.
std::optional<std::string> self_unavailable(identity const& who, comm_options const& options, int mpi_world_size);

std::unique_ptr<collective_backend> make_self_backend(identity const& who, comm_options const& options);

}  // namespace muster
