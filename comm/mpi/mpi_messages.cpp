#include <fmt/format.h>

#include <algorithm>

#include "comm/mpi/mpi_messages.hpp"

namespace muster::detail {

namespace {

/// Calls `body(offset, bytes)` for pieces of a message.
template <typename Body>
void for_pieces(std::size_t bytes, Body&& body) {
    for (std::size_t first = 0; first < bytes; first += largest_message_bytes)
        body(first, static_cast<int>(std::min(largest_message_bytes, bytes - first)));
}

}  // namespace

void mpi_messages::clear() noexcept {
    requests_.clear();
    peers_.clear();
    first_receive_ = receives_ = through_ = 0;
}

void mpi_messages::receive(direct_world const& world, int peer, void* data, std::size_t bytes, int tag) {
    for_pieces(bytes, [&](std::size_t first, int count) {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Irecv(static_cast<std::byte*>(data) + first, count, MPI_BYTE, peer, tag, world.comm, &request), "MPI_Irecv");
        if (receives_ == 0) first_receive_ = requests_.size();
        requests_.push_back(request);
        peers_.push_back(peer);
        ++receives_;
    });
}

void mpi_messages::send(direct_world const& world, int peer, void const* data, std::size_t bytes, int tag) {
    for_pieces(bytes, [&](std::size_t first, int count) {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Isend(static_cast<std::byte const*>(data) + first, count, MPI_BYTE, peer, tag, world.comm, &request),
              "MPI_Isend");
        if (request == MPI_REQUEST_NULL) return;
        requests_.push_back(request);
        peers_.push_back(peer);
    });
}

/// Tests them one by one: Open MPI's MPI_Testall looks at the requests only before it moves messages, its MPI_Test also
/// afterwards.
bool mpi_messages::test() {
    for (; through_ < requests_.size(); ++through_) {
        int done = 0;
        check(MPI_Test(&requests_[through_], &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) return false;
    }
    return true;
}

void mpi_messages::cancel_receives() noexcept {
    for (std::size_t i = first_receive_; i < first_receive_ + receives_; ++i)
        if (requests_[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests_[i]);
}

bool mpi_messages::released() noexcept {
    int done = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
}

void throw_mismatch(direct_world const& world, collective const& what, int peer) {
    auto const host = [&](int rank) { return world.hosts->at(static_cast<std::size_t>(rank)); };
    throw comm_error(errc::peer_failed,
                     fmt::format("{} ({}) of {} elements of {} on rank {} ({}): rank {} ({}) is at "
                                 "another collective: the tensor has another size, type, reduction or factor there, or the "
                                 "ranks start their collectives in different orders",
                                 to_string(what.what), to_string(what.how), what.in.count, to_string(what.in.type), world.rank,
                                 host(world.rank), peer, host(peer)),
                     {peer});
}

void mpi_messages::mark_pending(std::vector<bool>& ranks) noexcept {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        int done = 1;
        if (requests_[i] != MPI_REQUEST_NULL) MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE);
        if (done == 0) ranks[static_cast<std::size_t>(peers_[i])] = true;
    }
}

}  // namespace muster::detail
