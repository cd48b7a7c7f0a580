#include "comm/mpi/mpi_direct.hpp"

#include <fmt/format.h>

#include <cstring>

#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

int mpi_pairwise::tag_for(std::size_t elements) const noexcept {
    auto const kind = what_.what == collective::kind::sendrecv ? traffic::sendrecv : traffic::pairwise;
    return make_tag(kind, sequence_, hash_of_message(what_.what, what_.in.type, elements), world_.largest_tag);
}

void mpi_pairwise::start(direct_world const& world, unsigned sequence, collective const& what) {
    world_ = world;
    sequence_ = sequence;
    mismatch_timer_.start();
    what_ = what;
    transfers_ = transfers_of(what, world.size);
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
    // Each pair of ranks numbers its sendrecvs.
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

namespace {

// These sizes were measured with Open MPI 4.1 over shared memory, 2 to 4 ranks.

/// Messages up to here arrive without a handshake (both Open MPI's and MPICH's limits are 4 KiB, header included, or more).
constexpr std::size_t eager_bytes = 4000;

/// Larger ones cost a handshake each, so one round of whole tensors beats two rounds of parts up to this size; for two ranks up
/// to half of it.
constexpr std::size_t whole_bytes_of_all_ranks = std::size_t{1} << 17;

/// The size of a segment: large enough that handshakes hardly matter, small enough to need little scratch memory.
constexpr std::size_t segment_bytes = std::size_t{1} << 22;

/// Returns the same on all ranks.
bool goes_whole(std::size_t bytes, std::size_t ranks) noexcept {
    if (bytes <= eager_bytes || ranks == 1) return true;
    return bytes > eager_bytes * ranks && bytes <= whole_bytes_of_all_ranks / ranks;
}

}  // namespace

void direct_allreduce::start(direct_world const& world, unsigned sequence, collective const& what) {
    world_ = world;
    sequence_ = sequence;
    set_reduction(what_, what);
    std::uint64_t const hash = hash_of_reduction(what);
    tag_ = make_tag(traffic::reduce, sequence, hash, world.largest_tag);
    gather_tag_ = tag_of_traffic(tag_, traffic::gather);
    element_bytes_ = size_of(what.in.type);
    scatters_ = what.what == collective::kind::reducescatter;
    auto const ranks = static_cast<std::size_t>(world.size);
    whole_ = !scatters_ && goes_whole(what.in.bytes(), ranks);
    segments_ = segmented(what, world.size, segment_bytes);
    next_segment_ = 0;
    end_segment_ = whole_ ? 1 : segments_.count();
    mismatch_timer_.start();
    oldest_ = 0;
    under_way_ = 0;
    for (std::size_t i = 0; i < window_.size(); ++i) start_next();
}

bool direct_allreduce::advance() {
    for (std::size_t i = 0; i < under_way_; ++i) {
        segment& current = window_[(oldest_ + i) % window_.size()];
        if (current.where == segment::phase::finished) continue;
        if (!test(current)) {
            // A later segment must not send its results before this one does.
            if (current.where == segment::phase::reduce) break;
            continue;
        }
        if (current.where == segment::phase::reduce) {
            reduce(current);
            if (whole_ || scatters_)
                current.where = segment::phase::finished;
            else
                start_gather(current);
        } else
            current.where = segment::phase::finished;
    }
    while (under_way_ != 0 && window_[oldest_].where == segment::phase::finished) {
        oldest_ = (oldest_ + 1) % window_.size();
        --under_way_;
        start_next();
    }
    return under_way_ == 0;
}

void direct_allreduce::start_next() {
    if (next_segment_ == end_segment_ || under_way_ == window_.size()) return;
    segment& next = window_[(oldest_ + under_way_) % window_.size()];
    next.number = next_segment_++;
    ++under_way_;
    start_reduce(next);
}

void direct_allreduce::start_reduce(segment& next) {
    next.where = segment::phase::reduce;
    next.messages.clear();
    part const own = part_of(next, world_.rank);
    std::size_t const own_bytes = own.count * element_bytes_;
    std::size_t const needed = own_bytes * static_cast<std::size_t>(world_.size - 1);
    if (needed > next.scratch_bytes) {
        next.scratch.reset(static_cast<std::byte*>(::operator new[](needed, std::align_val_t{64})));
        next.scratch_bytes = needed;
    }
    auto const* const in = static_cast<std::byte const*>(what_.in.data);
    auto const receive_all = [&] {
        if (own_bytes == 0) return;
        for (int k = 1; k < world_.size; ++k)
            next.messages.receive(world_, (world_.rank + k) % world_.size,
                                  scratch_for(next, static_cast<std::size_t>(k - 1), own_bytes), own_bytes, tag_);
    };
    // Messages without a handshake are sent at once; for others the receives must be there first.
    bool const eager = whole_ && own_bytes <= eager_bytes;
    if (!eager) receive_all();
    for (int k = 1; k < world_.size; ++k) {
        // The order is opposite to that of the receives: at each step every rank sends to another one.
        int const peer = (world_.rank - k + world_.size) % world_.size;
        part const theirs = part_of(next, peer);
        next.messages.send(world_, peer, in + theirs.first * element_bytes_, theirs.count * element_bytes_, tag_);
    }
    if (eager) receive_all();
}

void direct_allreduce::reduce(segment& of) {
    part const own = part_of(of, world_.rank);
    std::size_t const own_bytes = own.count * element_bytes_;
    std::size_t const at = own.first * element_bytes_;
    sources_.resize(static_cast<std::size_t>(world_.size));
    for (int rank = 0; rank < world_.size; ++rank) {
        auto const k = static_cast<std::size_t>((rank - world_.rank + world_.size) % world_.size);
        sources_[static_cast<std::size_t>(rank)] =
            k == 0 ? static_cast<std::byte const*>(what_.in.data) + at : scratch_for(of, k - 1, own_bytes);
    }
    std::size_t const out_at = scatters_ ? at - share_of(what_.in.count, world_.size, world_.rank).first * element_bytes_ : at;
    combine(what_.in.type, what_.how, sources_, static_cast<std::byte*>(what_.out.data) + out_at, own.count, what_.scale);
}

void direct_allreduce::start_gather(segment& of) {
    of.where = segment::phase::gather;
    of.messages.clear();
    auto* const out = static_cast<std::byte*>(what_.out.data);
    for (int k = 1; k < world_.size; ++k) {
        int const peer = (world_.rank + k) % world_.size;
        part const theirs = part_of(of, peer);
        of.messages.receive(world_, peer, out + theirs.first * element_bytes_, theirs.count * element_bytes_, gather_tag_);
    }
    part const own = part_of(of, world_.rank);
    if (own.count == 0) return;
    for (int k = 1; k < world_.size; ++k)
        of.messages.send(world_, (world_.rank - k + world_.size) % world_.size, out + own.first * element_bytes_,
                         own.count * element_bytes_, gather_tag_);
}

bool direct_allreduce::test(segment& of) {
    if (of.messages.test()) return true;
    if (mismatch_timer_.due()) refuse_mismatch();
    return false;
}

void direct_allreduce::refuse_mismatch() const {
    int const peer = find_mismatch(world_, tag_, [&](int) { return tag_; });
    if (peer >= 0) throw_mismatch(world_, what_, peer);
}

void direct_allreduce::abandon() noexcept {
    for (auto& current : window_) current.messages.cancel_receives();
}

bool direct_allreduce::released() noexcept {
    bool all = true;
    for (auto& current : window_) all = current.messages.released() && all;
    return all;
}

void direct_allreduce::mark_pending(std::vector<bool>& ranks) noexcept {
    for (auto& current : window_)
        if (current.where != segment::phase::finished) current.messages.mark_pending(ranks);
}

}  // namespace muster::detail
