#include "comm/internal/mpi_direct_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/kernels.hpp"

namespace muster::detail {

namespace {

// Measured with Open MPI 4.1 over shared memory, 2 to 4 ranks.

/// Messages up to here arrive without a handshake (both Open MPI's and MPICH's limits are 4 KiB, header included, or more).
constexpr std::size_t eager_bytes = 4000;

/// Larger ones cost a handshake each, so that one round of whole tensors beats two rounds of parts up to here, for two ranks to
/// half of it.
constexpr std::size_t whole_bytes_of_all_ranks = std::size_t{1} << 17;

/// Of a segment: large enough that handshakes do not count, small enough that little scratch memory is needed.
constexpr std::size_t segment_bytes = std::size_t{1} << 22;

/// Tags hold the phase, then a sequence number, then as many bits of the arguments' hash as there is room for.
constexpr unsigned sequences = 1u << 13;

constexpr unsigned sequence_of(int tag) noexcept {
    return static_cast<unsigned>(tag) / 2 % sequences;
}

/// About a millisecond.
constexpr unsigned polls_per_look = 1u << 14;

/// The same on all ranks.
bool goes_whole(std::size_t bytes, std::size_t ranks) noexcept {
    if (bytes <= eager_bytes || ranks == 1) return true;
    return bytes > eager_bytes * ranks && bytes <= whole_bytes_of_all_ranks / ranks;
}

constexpr std::size_t line_bytes = 64;

}  // namespace

int direct_tag(unsigned sequence, collective const& what, int upper) noexcept {
    std::uint64_t hash = what.in.count;
    hash = hash * 8 + static_cast<std::uint64_t>(what.in.type);
    hash = hash * 8 + static_cast<std::uint64_t>(what.how);
    hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
    auto const room = (static_cast<std::uint64_t>(upper) + 1) / (2 * sequences);
    return static_cast<int>((hash >> 32) % std::max<std::uint64_t>(room, 1) * (2 * sequences) + sequence % sequences * 2);
}

void direct_allreduce::start(direct_world const& world, int tag, collective const& what) {
    world_ = world;
    tag_ = tag;
    what_ = what;
    element_bytes_ = size_of(what.in.type);
    whole_ = goes_whole(what.in.bytes(), static_cast<std::size_t>(world.size));
    segment_elements_ = whole_ ? what.in.count : segment_bytes / element_bytes_;
    next_element_ = 0;
    polls_ = 0;
    oldest_ = 0;
    in_flight_ = 0;
    for (std::size_t i = 0; i < window_.size(); ++i) start_next();
}

bool direct_allreduce::advance() {
    for (std::size_t i = 0; i < in_flight_; ++i) {
        segment& current = window_[(oldest_ + i) % window_.size()];
        if (current.where == segment::phase::finished) continue;
        if (!test(current)) {
            // A later segment must not send its results before this one does.
            if (current.where == segment::phase::exchange) break;
            continue;
        }
        if (current.where == segment::phase::exchange) {
            reduce(current);
            if (whole_)
                current.where = segment::phase::finished;
            else
                start_gather(current);
        } else
            current.where = segment::phase::finished;
    }
    while (in_flight_ != 0 && window_[oldest_].where == segment::phase::finished) {
        oldest_ = (oldest_ + 1) % window_.size();
        --in_flight_;
        start_next();
    }
    return in_flight_ == 0;
}

void direct_allreduce::start_next() {
    if (next_element_ == what_.in.count || in_flight_ == window_.size()) return;
    segment& next = window_[(oldest_ + in_flight_) % window_.size()];
    next.elements = {next_element_, std::min(segment_elements_, what_.in.count - next_element_)};
    next_element_ += next.elements.count;
    ++in_flight_;
    start_exchange(next);
}

/// Parts begin at multiples of a cache line, so that the last ones of a small segment may be empty.
direct_allreduce::part direct_allreduce::part_of(segment const& of, int rank) const noexcept {
    std::size_t const per_line = line_bytes / element_bytes_;
    auto const ranks = static_cast<std::size_t>(world_.size);
    std::size_t const share = ((of.elements.count + ranks - 1) / ranks + per_line - 1) / per_line * per_line;
    std::size_t const begin = std::min(of.elements.count, share * static_cast<std::size_t>(rank));
    std::size_t const end = std::min(of.elements.count, begin + share);
    return {of.elements.first + begin, end - begin};
}

void direct_allreduce::receive(segment& into, int peer, void* data, std::size_t bytes, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, world_.comm, &request), "MPI_Irecv");
    into.requests.push_back(request);
    ++into.receives;
}

void direct_allreduce::send(segment& from, int peer, void const* data, std::size_t bytes, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, world_.comm, &request), "MPI_Isend");
    if (request != MPI_REQUEST_NULL) from.requests.push_back(request);
}

void direct_allreduce::start_exchange(segment& next) {
    next.where = segment::phase::exchange;
    next.requests.clear();
    next.receives = 0;
    part const own = whole_ ? next.elements : part_of(next, world_.rank);
    std::size_t const own_bytes = own.count * element_bytes_;
    std::size_t const needed = own_bytes * static_cast<std::size_t>(world_.size - 1);
    if (needed > next.scratch_bytes) {
        next.scratch.reset(static_cast<std::byte*>(::operator new[](needed, std::align_val_t{line_bytes})));
        next.scratch_bytes = needed;
    }
    auto const* const in = static_cast<std::byte const*>(what_.in.data);
    if (own_bytes != 0)
        for (int k = 1; k < world_.size; ++k)
            receive(next, (world_.rank + k) % world_.size, scratch_for(next, static_cast<std::size_t>(k - 1), own_bytes),
                    own_bytes, tag_);
    for (int k = 1; k < world_.size; ++k) {
        // The other way round than the receives: at each step every rank sends to another one.
        int const peer = (world_.rank - k + world_.size) % world_.size;
        part const theirs = whole_ ? next.elements : part_of(next, peer);
        if (theirs.count != 0) send(next, peer, in + theirs.first * element_bytes_, theirs.count * element_bytes_, tag_);
    }
}

void direct_allreduce::reduce(segment& of) {
    part const own = whole_ ? of.elements : part_of(of, world_.rank);
    std::size_t const own_bytes = own.count * element_bytes_;
    std::size_t const at = own.first * element_bytes_;
    sources_.resize(static_cast<std::size_t>(world_.size));
    for (int rank = 0; rank < world_.size; ++rank) {
        auto const k = static_cast<std::size_t>((rank - world_.rank + world_.size) % world_.size);
        sources_[static_cast<std::size_t>(rank)] =
            k == 0 ? static_cast<std::byte const*>(what_.in.data) + at : scratch_for(of, k - 1, own_bytes);
    }
    combine(what_.in.type, what_.how, sources_, static_cast<std::byte*>(what_.out.data) + at, own.count, what_.scale);
}

void direct_allreduce::start_gather(segment& of) {
    of.where = segment::phase::gather;
    of.requests.clear();
    of.receives = 0;
    auto* const out = static_cast<std::byte*>(what_.out.data);
    for (int k = 1; k < world_.size; ++k) {
        int const peer = (world_.rank + k) % world_.size;
        part const theirs = part_of(of, peer);
        if (theirs.count != 0) receive(of, peer, out + theirs.first * element_bytes_, theirs.count * element_bytes_, tag_ + 1);
    }
    part const own = part_of(of, world_.rank);
    if (own.count == 0) return;
    for (int k = 1; k < world_.size; ++k)
        send(of, (world_.rank - k + world_.size) % world_.size, out + own.first * element_bytes_, own.count * element_bytes_,
             tag_ + 1);
}

bool direct_allreduce::test(segment& of) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(of.requests.size()), of.requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (done == 0 && ++polls_ % polls_per_look == 0) look_for_strangers();
    return done != 0;
}

/// A first-phase message with this operation's sequence number and another tag comes from a rank whose arguments differ.
void direct_allreduce::look_for_strangers() const {
    for (int k = 1; k < world_.size; ++k) {
        int const peer = (world_.rank + k) % world_.size;
        int found = 0;
        MPI_Status status;
        check(MPI_Iprobe(peer, MPI_ANY_TAG, world_.comm, &found, &status), "MPI_Iprobe");
        if (found == 0 || status.MPI_TAG % 2 != 0) continue;
        if (sequence_of(status.MPI_TAG) == sequence_of(tag_) && status.MPI_TAG != tag_) throw_mismatch(peer);
    }
}

void direct_allreduce::throw_mismatch(int peer) const {
    auto const host = [&](int rank) { return world_.hosts->at(static_cast<std::size_t>(rank)); };
    throw comm_error(errc::peer_failed, fmt::format("allreduce ({}) of {} elements of {} on rank {} ({}): rank {} ({}) is at "
                                                    "another collective: the tensor has another size, type or "
                                                    "reduction there, or the ranks start their collectives in different orders",
                                                    to_string(what_.how), what_.in.count, to_string(what_.in.type), world_.rank,
                                                    host(world_.rank), peer, host(peer)));
}

void direct_allreduce::abandon() noexcept {
    for (auto& current : window_)
        for (std::size_t i = 0; i < current.receives && i < current.requests.size(); ++i)
            if (current.requests[i] != MPI_REQUEST_NULL) MPI_Cancel(&current.requests[i]);
}

bool direct_allreduce::released() noexcept {
    bool all = true;
    for (auto& current : window_) {
        int done = 0;
        MPI_Testall(static_cast<int>(current.requests.size()), current.requests.data(), &done, MPI_STATUSES_IGNORE);
        all = all && done != 0;
    }
    return all;
}

}  // namespace muster::detail
