#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "comm/backend/keep_forever.hpp"
#include "comm/mpi/mpi_blame.hpp"

namespace muster::detail {

void send_blame(direct_world const& world, std::vector<late_rank> const& late) noexcept try {
    int const tag = blame_tag(world.largest_tag);
    if (tag < 0 || late.empty()) return;
    auto text = std::make_unique<std::string>(write_blame(late));
    for (int rank = 0; rank < world.size; ++rank) {
        // Not to the dead; who is stopped may go on, and is to know then.
        auto const is_dead = [rank](late_rank const& each) { return each.dead && each.rank == rank; };
        if (rank == world.rank || std::any_of(late.begin(), late.end(), is_dead)) continue;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_BYTE, rank, tag, world.comm, &request);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    keep_forever(std::move(text));  // no rank waits for these messages to have gone
} catch (...) {                     // out of memory: the others find out by themselves
}

void tell_through(direct_world const& world) noexcept {
    int const tag = through_tag(world.largest_tag);
    if (tag < 0) return;
    for (int k = 1; k < world.size; ++k) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(nullptr, 0, MPI_BYTE, (world.rank + k) % world.size, tag, world.comm, &request);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
}

std::vector<late_rank> receive_blame(direct_world const& world) {
    int const tag = blame_tag(world.largest_tag);
    int found = 0, bytes = 0;
    MPI_Status status;
    if (tag < 0) return {};
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, world.comm, &found, &status), "MPI_Iprobe");
    if (found == 0) return {};
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    std::string text(static_cast<std::size_t>(bytes), '\0');
    check(MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, tag, world.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    auto const& host = world.hosts->at(static_cast<std::size_t>(status.MPI_SOURCE));
    return read_blame(text, fmt::format("rank {} on {}", status.MPI_SOURCE, host), world.size);
}

}  // namespace muster::detail
