#include "io/dataset/file_ranks.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

std::shared_ptr<communicator> alone() {
    comm_options how;
    how.backend = "self";
    return std::make_shared<communicator>(communicator::create(identity{}, how));
}

comm_options options_for_files(identity const& who) {
    comm_options how;
    if (who.world_size > 1) how.backend = "mpi";
    return how;
}

void const* mpi_handle(communicator const& ranks) {
    void const* const handle = ranks.native();
    if (handle == nullptr && ranks.size() > 1)
        throw error(errc::unavailable,
                    fmt::format("parallel HDF5 works over MPI, and these {} ranks communicate over {}; make their communicator "
                                "with the backend mpi (comm_options::backend)",
                                ranks.size(), ranks.backend()));
    return handle;
}

}  // namespace muster
