#include "io/dataset/file_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/throw_error.hpp"

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
        throw_error(errc::unavailable,
                    "parallel HDF5 works over MPI, and these {} ranks communicate over {}; make their communicator with the "
                    "backend mpi (comm_options::backend)",
                    ranks.size(), ranks.backend());
    return handle;
}

void broadcast_bytes(communicator& ranks, std::string_view what, std::string& bytes) {
    std::int64_t count = static_cast<std::int64_t>(bytes.size());
    ranks.broadcast(fmt::format("size of {}", what), view_of(std::span(&count, 1)), 0).wait();
    bytes.resize(static_cast<std::size_t>(count));
    constexpr std::size_t most = std::size_t{256} << 20;
    for (std::size_t at = 0; at < bytes.size(); at += most)
        ranks.broadcast(what, {bytes.data() + at, std::min(most, bytes.size() - at), dtype::u8, memory_kind::host}, 0).wait();
}

}  // namespace muster
