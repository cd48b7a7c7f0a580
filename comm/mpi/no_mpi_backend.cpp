// The mpi backend of a build without MPI refuses every world.
#ifndef MUSTER_HAVE_MPI
#include "base/error.hpp"
#include "comm/mpi/mpi_backend.hpp"

namespace muster {

std::optional<std::string> mpi_unavailable(identity const&, comm_options const&) {
    return "built without MPI: install libopenmpi-dev and build again";
}

std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options) {
    throw error(errc::unavailable, "mpi: " + *mpi_unavailable(who, options));
}

int running_mpi_world_size() noexcept {
    return 0;
}

}  // namespace muster
#endif
