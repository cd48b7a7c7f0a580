#include "comm/shm/shm_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/backend/comm_error.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/shm_sizes.hpp"
#include "comm/shm/signature.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::shm {

namespace {

// Measured on 2 cores with 1 MiB of second-level cache each, 2 and 4 ranks.

/// A reduction's input travels with the announcement up to so many bytes of all ranks together.
constexpr std::size_t whole_reduction_bytes = std::size_t{128} << 10;

/// The tables of an alltoall at the head of a payload: what is sent to each rank, then what is expected of each.
std::size_t table_bytes(world const& all) noexcept {
    return (2 * static_cast<std::size_t>(all.size) * sizeof(std::uint64_t) + line_bytes - 1) / line_bytes * line_bytes;
}

void copy_bytes(void* to, void const* from, std::size_t bytes) noexcept {
    if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

// ---- what is where

std::size_t shm_operation::limit(world const& all) const noexcept {
    std::size_t most = all.sizes.payload_bytes;
    if (reduces()) most = std::min(most, whole_reduction_bytes / static_cast<std::size_t>(all.size));
    if (what_.what == collective::kind::alltoall) most -= std::min(most, table_bytes(all));
    return most;
}

std::size_t shm_operation::input_bytes(world const& all, int rank) const noexcept {
    switch (what_.what) {
        case collective::kind::barrier: return 0;
        case collective::kind::broadcast: return rank == what_.root ? what_.in.bytes() : 0;
        case collective::kind::allgather:
            return what_.receive_counts.empty() ? what_.in.bytes()
                                                : what_.receive_counts[static_cast<std::size_t>(rank)] * element_bytes();
        case collective::kind::alltoall: return all.of(rank).announced(sequence_).count * element_bytes();
        default: return what_.in.bytes();
    }
}

/// Of what travelled with the announcement.
std::byte const* shm_operation::input_at(world const& all, int rank) const noexcept {
    if (what_.what == collective::kind::alltoall) return all.of(rank).payload(sequence_) + table_bytes(all);
    auto const& said = all.of(rank).announced(sequence_);
    return input_bytes(all, rank) <= said.inlined.size() ? said.inlined.data() : all.of(rank).payload(sequence_);
}

std::size_t shm_operation::largest_input(world const& all) const noexcept {
    if (what_.what == collective::kind::broadcast) return what_.in.bytes();
    if (counts_are_equal(what_)) return input_bytes(all, all.rank);
    std::size_t largest = 0;
    for (int rank = 0; rank < all.size; ++rank) largest = std::max(largest, input_bytes(all, rank));
    return largest;
}

/// Of a broadcast every rank but the root has all of the tensor to get. Shares of an allreduce begin at multiples of a line, so
/// that the last ones of a small tensor may be empty.
element_range shm_operation::share(world const& all, int rank) const noexcept {
    if (broadcasts()) return {0, rank == what_.root ? 0 : what_.in.count};
    if (what_.what == collective::kind::reducescatter) return share_of(what_.in.count, all.size, rank);
    std::size_t const per_line = line_bytes / element_bytes();
    auto const ranks = static_cast<std::size_t>(all.size);
    std::size_t const most = ((what_.in.count + ranks - 1) / ranks + per_line - 1) / per_line * per_line;
    std::size_t const first = std::min(what_.in.count, most * static_cast<std::size_t>(rank));
    return {first, std::min(most, what_.in.count - first)};
}

shm_operation::pull shm_operation::pull_from(world const& all, int rank) const noexcept {
    auto const at = static_cast<std::size_t>(rank);
    switch (what_.what) {
        case collective::kind::broadcast: return rank == what_.root && rank != all.rank ? pull{0, what_.in.bytes(), 0} : pull{};
        case collective::kind::allgather: {
            if (what_.receive_counts.empty()) return {0, what_.in.bytes(), at * what_.in.bytes()};
            std::size_t before = 0;
            for (std::size_t i = 0; i < at; ++i) before += what_.receive_counts[i];
            return {0, what_.receive_counts[at] * element_bytes(), before * element_bytes()};
        }
        case collective::kind::alltoall: {
            auto const* const table = reinterpret_cast<std::uint64_t const*>(all.of(rank).payload(sequence_));
            std::size_t from = 0, to = 0;
            for (int i = 0; i < all.rank; ++i) from += table[i];
            for (std::size_t i = 0; i < at; ++i) to += what_.receive_counts[i];
            return {from * element_bytes(), what_.receive_counts[at] * element_bytes(), to * element_bytes()};
        }
        default: return {};
    }
}

// ---- the start

/// Goes on from the rank where it stopped last time: ranks that were there stay there.
template <typename Of>
bool shm_operation::all_reached(world const& all, std::uint64_t number, Of of) noexcept {
    for (; scan_ < all.size; ++scan_)
        if (scan_ != all.rank && of(all.of(scan_)).load(std::memory_order_acquire) < number) return false;
    scan_ = 0;
    return true;
}

bool shm_operation::advance(world& all) {
    switch (stage_) {
        case stage::announce:
            if (what_.what == collective::kind::sendrecv) {
                if (what_.root == all.rank) {
                    copy_bytes(out(), in(), what_.in.bytes());
                    return true;
                }
                announce_pair(all);
                return match_pair(all);
            }
            if (!announce(all)) return false;
            stage_ = stage::match;
            return match(all);
        case stage::match: return match(all);
        case stage::chunks: return advance_chunks(all);
        case stage::chunks_end: return end_chunks(all);
        case stage::direct: return advance_direct(all);
        case stage::staged: return advance_staged(all);
        case stage::leave:
            return all_reached(
                all, sequence_, [](region const& r) -> auto& { return r.progress().finished; });
        case stage::pair_match: return match_pair(all);
        case stage::pair_rounds: return advance_pair(all);
        case stage::pair_leave:
            return all.of(what_.root)
                       .progress_with(static_cast<std::size_t>(all.rank))
                       .finished.load(std::memory_order_acquire) >= sequence_;
    }
    return false;
}

/// False if this rank cannot yet.
bool shm_operation::announce(world& all) {
    bool const travels = input_bytes(all, all.rank) <= limit(all);
    bool const in_chunks = (reduces() || broadcasts()) && what_.in.bytes() > limit(all);
    if (in_chunks && reduces() && gathers(all) && !fill_own_window(all)) return false;
    sequence_ = ++all.sequence;
    announcement& say = all.own().announced(sequence_);
    say.signature = signature_of(what_);
    say.count = what_.in.count;
    say.in = reinterpret_cast<std::uintptr_t>(what_.in.data);
    say.out = reinterpret_cast<std::uintptr_t>(what_.out.data);
    say.in_shared = travels || !all.mappable ? shared_place{} : place_of(what_.in.data, what_.in.bytes());
    say.out_shared = !in_chunks || !all.mappable ? shared_place{} : place_of(what_.out.data, what_.out.bytes());
    if (in_chunks) {
        chunk_counters& chunks = all.own().chunks(sequence_);
        chunks.claimed.store(0, std::memory_order_relaxed);
        chunks.done.store(0, std::memory_order_relaxed);
    }
    if (what_.what == collective::kind::alltoall) {
        auto* const table = reinterpret_cast<std::uint64_t*>(all.own().payload(sequence_));
        std::copy(what_.send_counts.begin(), what_.send_counts.end(), table);
        std::copy(what_.receive_counts.begin(), what_.receive_counts.end(), table + all.size);
        if (what_.in.bytes() <= limit(all)) copy_bytes(all.own().payload(sequence_) + table_bytes(all), in(), what_.in.bytes());
    } else if (std::size_t const bytes = input_bytes(all, all.rank); bytes <= say.inlined.size()) {
        copy_bytes(say.inlined.data(), in(), bytes);
    } else if (bytes <= limit(all)) {
        copy_bytes(all.own().payload(sequence_), in(), bytes);
    }
    say.sequence.store(sequence_, std::memory_order_release);
    return true;
}

bool shm_operation::match(world& all) {
    if (!all_reached(
            all, sequence_, [&](region const& r) -> auto& { return r.announced(sequence_).sequence; }))
        return false;
    check_announcements(all);
    std::size_t const largest = largest_input(all);
    if (largest <= limit(all)) {
        finish_whole(all);
        return true;
    }
    if (reduces()) {
        way const how = way_of(all);
        if (how == way::staged) {
            start_staged(all);
            return advance_staged(all);
        }
        start_chunks(all, how);
        return advance_chunks(all);
    }
    bool const shared = everything_is_shared(all);
    if (broadcasts() && (all.direct || shared)) {
        start_chunks(all, shared ? way::mapped : way::direct);
        return advance_chunks(all);
    }
    if (shared) {
        start_direct(all);
        return advance_direct(all);
    }
    start_staged(all);
    return advance_staged(all);
}

/// All ranks compare the same announcements and so come to the same result.
void shm_operation::check_announcements(world const& all) const {
    announcement const& mine = all.own().announced(sequence_);
    for (int rank = 0; rank < all.size; ++rank) {
        announcement const& theirs = all.of(rank).announced(sequence_);
        if (theirs.signature == mine.signature && (theirs.count == mine.count || !counts_are_equal(what_))) continue;
        throw comm_error(
            errc::peer_failed,
            fmt::format("{} on rank {} ({}): rank {} ({}) is at another collective: the tensor has another size, type, "
                        "reduction or factor there, or the ranks start their collectives in different orders; it has {}",
                        describe_signature(mine.signature, mine.count), all.rank, all.hosts[static_cast<std::size_t>(all.rank)],
                        rank, all.hosts[static_cast<std::size_t>(rank)], describe_signature(theirs.signature, theirs.count)),
            {});
    }
    if (what_.what == collective::kind::alltoall) check_counts(all);
}

/// Every rank checks all pairs, so that all fail if any does.
void shm_operation::check_counts(world const& all) const {
    auto const tables = [&](int rank) { return reinterpret_cast<std::uint64_t const*>(all.of(rank).payload(sequence_)); };
    for (int to = 0; to < all.size; ++to)
        for (int from = 0; from < all.size; ++from) {
            std::uint64_t const sent = tables(from)[to], expected = tables(to)[all.size + from];
            if (sent == expected) continue;
            throw comm_error(errc::peer_failed,
                             fmt::format("alltoall on rank {} ({}): rank {} ({}) sends {} elements of {} to rank {} ({}), which "
                                         "expects {}; give both the same count",
                                         all.rank, all.hosts[static_cast<std::size_t>(all.rank)], from,
                                         all.hosts[static_cast<std::size_t>(from)], sent, to_string(what_.in.type), to,
                                         all.hosts[static_cast<std::size_t>(to)], expected));
        }
}

void shm_operation::copy_own(world const& all) const noexcept {
    pull const mine = pull_from(all, all.rank);
    copy_bytes(out() + mine.to, in() + mine.from, mine.bytes);
}

void shm_operation::finish_whole(world& all) {
    if (!reduces()) {
        copy_own(all);
        for (int rank = 0; rank < all.size; ++rank) {
            if (rank == all.rank) continue;
            pull const next = pull_from(all, rank);
            if (next.bytes != 0) copy_bytes(out() + next.to, input_at(all, rank) + next.from, next.bytes);
        }
        return;
    }
    element_range const part =
        what_.what == collective::kind::allreduce ? element_range{0, what_.in.count} : share(all, all.rank);
    std::size_t const at = part.first * element_bytes();
    for (int rank = 0; rank < all.size; ++rank)
        all.sources[static_cast<std::size_t>(rank)] = (rank == all.rank ? in() : input_at(all, rank)) + at;
    combine(what_.in.type, what_.how, all.sources, out(), part.count, what_.scale);
}

// ---- missing

bool shm_operation::waits_for(world const& all, int rank) const noexcept {
    region const& theirs = all.of(rank);
    auto const reached = [](std::atomic<std::uint64_t> const& number) { return number.load(std::memory_order_acquire); };
    switch (stage_) {
        case stage::announce: return reached(theirs.progress().worked) + 1 < all.round;
        case stage::match: return reached(theirs.announced(sequence_).sequence) < sequence_;
        case stage::chunks:
        case stage::direct: return false;  // it is this rank that works
        case stage::chunks_end:
            return reached(theirs.chunks(sequence_).joined) == sequence_ && reached(theirs.progress().finished) < sequence_;
        case stage::leave: return reached(theirs.progress().finished) < sequence_;
        case stage::staged:
            return reached(theirs.progress().filled) < std::min(filled_, worked_ + 1) ||
                   reached(theirs.progress().worked) < std::min(drained_ + 1, worked_);
        case stage::pair_match:
        case stage::pair_rounds:
        case stage::pair_leave: return rank == what_.root;
    }
    return false;
}

std::vector<int> shm_operation::missing(world const& all) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < all.size; ++rank)
        if (rank != all.rank && waits_for(all, rank)) ranks.push_back(rank);
    return ranks;
}

}  // namespace muster::shm
