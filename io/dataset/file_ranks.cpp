#include "io/dataset/file_ranks.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/fail_together.hpp"

namespace muster::together {

namespace {

void reduce(communicator* comm, char const* name, std::span<std::uint64_t> values, reduction how) {
    if (size(comm) == 1 || values.empty()) return;
    // Same bits: a signed and an unsigned type of one size may alias.
    std::span<std::int64_t> const bits(reinterpret_cast<std::int64_t*>(values.data()), values.size());
    comm->allreduce(name, view_of(bits), how).wait();
}

}  // namespace

int rank(communicator* comm) {
    return comm != nullptr ? comm->rank() : 0;
}
int size(communicator* comm) {
    return comm != nullptr ? comm->size() : 1;
}
comm_options options_for_files(identity const& who) {
    comm_options how;
    if (who.world_size > 1) how.backend = "mpi";
    return how;
}
void const* mpi_handle(communicator* comm) {
    if (size(comm) == 1) return comm != nullptr ? comm->native() : nullptr;
    if (comm->native() == nullptr)
        throw error(errc::unavailable, fmt::format("parallel HDF5 works over MPI, and these {} ranks met over \"{}\": make their "
                                                   "communicator with the backend mpi (comm_options::backend)",
                                                   comm->size(), comm->backend()));
    return comm->native();
}

void agree(communicator* comm, std::string_view what, std::exception_ptr failure) {
    if (size(comm) > 1)
        muster::agree(*comm, what, failure);
    else if (failure)
        std::rethrow_exception(failure);
}

void sum(communicator* comm, std::span<std::uint64_t> values) {
    reduce(comm, "checksums", values, reduction::sum);
}
void max(communicator* comm, std::span<std::uint64_t> values) {
    reduce(comm, "sizes", values, reduction::max);
}

}  // namespace muster::together
