#include "comm/mpi/mpi_node_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

namespace {

/// MPI_Iprobe moves messages after it has looked, so that it finds one when it is asked again.
constexpr int last_probes = 16;

}  // namespace

void node_allreduce::start(direct_world const& world, unsigned sequence, collective const& what) noexcept {
    world_ = world;
    sequence_ = sequence;
    set_reduction(what_, what);
    hash_ = hash_of_reduction(what);
    number_ = ++world.node->started;
    next_ = 0;
    least_known_ = std::numeric_limits<std::uint64_t>::max();
    mismatch_timer_.start();
    posted_ = post();
}

/// False if another rank may still need what lies there.
bool node_allreduce::post() noexcept {
    node_memory& node = *world_.node;
    std::size_t const bytes = what_.in.bytes();
    std::uint64_t const entries = node_memory::entries_of(bytes);
    if (number_ > node.others + entries) {
        std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
        for (int rank = 0; rank < world_.size; ++rank)
            if (rank != world_.rank) least = std::min(least, node.standing(rank).finished.load(std::memory_order_acquire));
        node.others = least;
        if (number_ > least + entries) return false;
    }
    node_entry& own = node.entry(world_.rank, number_);
    std::memcpy(node.data(world_.rank, number_, bytes), what_.in.data, bytes);
    own.signature.store(node_signature(sequence_, hash_), std::memory_order_relaxed);
    own.finished = node.finished;
    own.number.store(number_, std::memory_order_release);
    return true;
}

bool node_allreduce::all_are_there() {
    node_memory const& node = *world_.node;
    for (; next_ < world_.size; ++next_) {
        if (next_ == world_.rank) continue;
        node_entry const& theirs = node.entry(next_, number_);
        if (theirs.number.load(std::memory_order_acquire) != number_) return false;
        if (theirs.signature.load(std::memory_order_relaxed) != node_signature(sequence_, hash_))
            throw_mismatch(world_, what_, next_);
        least_known_ = std::min(least_known_, theirs.finished);
    }
    return true;
}

bool node_allreduce::advance() {
    node_memory& node = *world_.node;
    if (!posted_) posted_ = post();
    if (!posted_ || number_ != node.finished + 1 || !all_are_there()) {
        if (mismatch_timer_.due()) refuse_others();
        return false;
    }
    sources_.resize(static_cast<std::size_t>(world_.size));
    for (int rank = 0; rank < world_.size; ++rank)
        sources_[static_cast<std::size_t>(rank)] =
            rank == world_.rank ? what_.in.data : node.data(rank, number_, what_.in.bytes());
    combine(what_.in.type, what_.how, sources_, what_.out.data, what_.in.count, what_.scale);
    node.others = std::max(node.others, least_known_);
    node.finished = number_;
    node.standing(world_.rank).finished.store(number_, std::memory_order_release);
    return true;
}

/// A rank with a tensor of another size may send messages of it.
void node_allreduce::refuse_messages() const {
    int const tag = make_tag(traffic::reduce, sequence_, hash_, world_.largest_tag);
    int const peer = find_mismatch(world_, tag, [&](int) { return tag; });
    if (peer >= 0) throw_mismatch(world_, what_, peer);
}

/// One that gave up comes no more.
void node_allreduce::refuse_others() {
    refuse_messages();
    auto const host = [&](int rank) { return world_.hosts->at(static_cast<std::size_t>(rank)); };
    for (int rank = 0; rank < world_.size; ++rank) {
        int because_of = -1;
        if (!misses(rank) || !world_.node->has_given_up(rank, because_of) || !misses(rank)) continue;
        // Perhaps because of what this rank gives: what it sent before it gave up may only now be looked at.
        for (int i = 0; i < last_probes; ++i) refuse_messages();
        bool const known = because_of >= 0 && because_of < world_.size && because_of != world_.rank && because_of != rank;
        throw comm_error(
            errc::peer_failed,
            fmt::format("{} ({}) on rank {} ({}): rank {} ({}) has given up an earlier collective{}; look at what it reports",
                        to_string(what_.what), to_string(what_.how), world_.rank, host(world_.rank), rank, host(rank),
                        known ? fmt::format(", waiting for rank {} ({})", because_of, host(because_of)) : ""),
            {known ? because_of : rank});
    }
}

bool node_allreduce::misses(int rank) const noexcept {
    return rank != world_.rank && world_.node->entry(rank, number_).number.load(std::memory_order_acquire) < number_;
}

void node_allreduce::mark_pending(std::vector<bool>& ranks) const noexcept {
    for (int rank = 0; rank < world_.size; ++rank)
        if (misses(rank)) ranks[static_cast<std::size_t>(rank)] = true;
}

int node_allreduce::first_missing() const noexcept {
    for (int rank = 0; rank < world_.size; ++rank)
        if (misses(rank)) return rank;
    return -1;
}

}  // namespace muster::detail
