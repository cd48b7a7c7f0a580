#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "comm/mpi/mpi_pairwise.hpp"

namespace muster::detail {

namespace {

std::vector<std::size_t> begins_of(std::vector<std::size_t> const& counts) {
    std::vector<std::size_t> begins(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), std::size_t{0});
    return begins;
}

}  // namespace

mpi_pairwise::transfer mpi_pairwise::transfer_with(int peer) const noexcept {
    auto const p = static_cast<std::size_t>(peer);
    switch (what_.what) {
        case collective::kind::alltoall:
            return {{send_begins_[p], what_.send_counts[p]}, {receive_begins_[p], what_.receive_counts[p]}};
        case collective::kind::allgather: return {{0, what_.in.count}, {receive_begins_[p], what_.receive_counts[p]}};
        default:
            if (peer != what_.root) return {};
            return {{0, what_.in.count}, {0, what_.out.count}};
    }
}

int mpi_pairwise::tag_for(std::size_t elements) const noexcept {
    auto const kind = what_.what == collective::kind::sendrecv ? traffic::sendrecv : traffic::pairwise;
    return make_tag(kind, sequence_, hash_of_message(what_.what, what_.in.type, elements), world_.largest_tag);
}

void mpi_pairwise::start(direct_world const& world, unsigned sequence, collective const& what) {
    world_ = world;
    sequence_ = sequence;
    mismatch_timer_.start();
    what_ = what;
    send_begins_ = begins_of(what.send_counts);
    receive_begins_ = begins_of(what.receive_counts);
    messages_.clear();
    for (int k = 1; k < world.size; ++k) {
        int const peer = (world.rank + k) % world.size;
        auto const into = part_of(what_.out, transfer_with(peer).received);
        messages_.receive(world, peer, into.data, into.bytes(), tag_for(into.count));
    }
    for (int k = 1; k < world.size; ++k) {
        int const peer = (world.rank - k + world.size) % world.size;
        auto const from = part_of(what_.in, transfer_with(peer).sent);
        messages_.send(world, peer, from.data, from.bytes(), tag_for(from.count));
    }
    auto const own = transfer_with(world.rank);
    auto const from = part_of(what_.in, own.sent), into = part_of(what_.out, own.received);
    if (into.count != 0 && from.data != into.data) std::memcpy(into.data, from.data, into.bytes());
}

bool mpi_pairwise::advance() {
    if (messages_.test()) return true;
    if (mismatch_timer_.due()) refuse_mismatch();
    return false;
}

void mpi_pairwise::refuse_mismatch() const {
    auto const tag_from = [&](int peer) { return tag_for(transfer_with(peer).received.count); };
    // A sendrecv is numbered with each rank apart.
    int const only = what_.what == collective::kind::sendrecv ? what_.root : -1;
    int const peer = find_mismatch(world_, tag_for(0), tag_from, only);
    if (peer < 0) return;
    auto const host = [&](int rank) { return world_.hosts->at(static_cast<std::size_t>(rank)); };
    throw comm_error(errc::peer_failed,
                     fmt::format("{} of {} on rank {} ({}): rank {} ({}) sends another number of elements than the {} that are "
                                 "expected of it, another type, or is at another collective; compare what both give",
                                 to_string(what_.what), to_string(what_.in.type), world_.rank, host(world_.rank), peer,
                                 host(peer), transfer_with(peer).received.count),
                     {peer});
}

}  // namespace muster::detail
