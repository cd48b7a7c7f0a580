#include "comm/shm/shm_operation.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/tensor/reduction_kernels.hpp"
#include "comm/tensor/simd.hpp"

namespace muster::shm {

namespace {

// Measured on 2 cores with 1 MiB of second-level cache each, 2 and 4 ranks.

/// A reduction's input travels with the announcement up to so many bytes of all ranks together; where ranks share processors waits cost more, see geometry.
constexpr std::size_t whole_reduction_bytes = std::size_t{64} << 10;
/// … of each rank where there are two: in halves fewer bytes move, for two more waits.
constexpr std::size_t whole_of_two = std::size_t{16} << 10;

/// Where each rank has a processor the others' announcements mostly come within the 0.4 us that so many polls take: then start() ends the collective.
constexpr unsigned polls_at_once = 32;

/// From so many bytes on it pays to write past the caches where the processors are far apart, and the time is taken.
constexpr std::size_t least_streamed = std::size_t{4} << 10;
/// Up to so many where ranks share processors: larger tensors take longer than a rank has its processor at a time, and what is measured says little.
constexpr std::size_t most_streamed_in_a_crowd = std::size_t{128} << 10;

/// From so many bytes on a reduction's input in a shared buffer does not travel, for one more wait.
constexpr std::size_t lent_bytes = std::size_t{8} << 10, lent_in_a_crowd = std::size_t{32} << 10;

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
    if (reduces() && all.crowded) return all.sizes.largest_in_a_crowd();
    std::size_t most = all.sizes.payload_bytes;
    if (reduces())
        most = std::min(most, all.size == 2 ? whole_of_two : whole_reduction_bytes / static_cast<std::size_t>(all.size));
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
        case collective::kind::alltoall:
            return rank == all.rank ? what_.in.bytes() : all.of(rank).announced(sequence_).count * element_bytes();
        default: return what_.in.bytes();
    }
}

/// Whether this rank's input, though small enough to travel, may be read where it lies.
bool shm_operation::is_lent(world const& all) const noexcept {
    if (!reduces() || !all.mappable || what_.in.bytes() > limit(all)) return false;
    if (what_.in.bytes() < (all.crowded ? lent_in_a_crowd : lent_bytes)) return false;
    return place_of(what_.in.data, what_.in.bytes()).buffer != 0 && place_of(what_.out.data, what_.out.bytes()).buffer != 0;
}

bool shm_operation::anyone_lends(world const& all) const noexcept {
    if (!reduces() || what_.in.bytes() < lent_bytes) return false;
    for (int rank = 0; rank < all.size; ++rank)
        if (all.of(rank).announced(sequence_).tensors.in_shared.buffer != 0) return true;
    return false;
}

/// Of what travelled with the announcement, or after it.
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

bool shm_operation::all_announced(world const& all) noexcept {
    return all_reached(
        all, sequence_, [this](region const& r) -> auto& { return r.announced(sequence_).sequence; });
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
            for (unsigned polls = 0; !all.crowded && polls < polls_at_once && !all_announced(all); ++polls) relax();
            return match(all);
        case stage::match: return match(all);
        case stage::chunks: return advance_chunks(all);
        case stage::chunks_end: return end_chunks(all);
        case stage::direct: return advance_direct(all);
        case stage::staged: return advance_staged(all);
        case stage::leave:
            return all_reached(
                all, sequence_, [](region const& r) -> auto& { return r.progress().finished; });
        case stage::lent:
            for (int rank = 0; rank < all.size; ++rank)
                if (waits_for(all, rank)) return false;
            finish_whole(all);
            return true;
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
    bool const lends = is_lent(all);
    std::size_t const bytes = input_bytes(all, all.rank);
    bool const travels = bytes <= limit(all) && !lends;
    bool const in_chunks = lends || ((reduces() || broadcasts()) && what_.in.bytes() > limit(all));
    choose_stores(all);
    if (in_chunks && reduces() && gathers(all) && !fill_own_window(all)) return false;
    if (!lends && goes_in_rounds(all) && !fill_ahead(all)) return false;
    sequence_ = ++all.sequence;
    if (reduces()) all.stores.count(what_.in.bytes());
    announcement& say = all.own().announced(sequence_);
    say.signature = signature_of(what_);
    say.count = what_.in.count;
    if (bytes <= say.inlined.size() && what_.what != collective::kind::alltoall && largest_input(all) <= limit(all)) {
        copy_bytes(say.inlined.data(), in(), bytes);
    } else {
        say.tensors = {reinterpret_cast<std::uintptr_t>(what_.in.data), reinterpret_cast<std::uintptr_t>(what_.out.data),
                       travels || !all.mappable ? shared_place{} : place_of(what_.in.data, what_.in.bytes()),
                       !in_chunks || !all.mappable ? shared_place{} : place_of(what_.out.data, what_.out.bytes())};
        if (in_chunks) {
            chunk_counters& chunks = all.own().chunks(sequence_);
            chunks.claimed.store(0, std::memory_order_relaxed);
            chunks.done.store(0, std::memory_order_relaxed);
        }
        if (what_.what == collective::kind::alltoall) {
            auto* const table = reinterpret_cast<std::uint64_t*>(all.own().payload(sequence_));
            std::copy(what_.send_counts.begin(), what_.send_counts.end(), table);
            std::copy(what_.receive_counts.begin(), what_.receive_counts.end(), table + all.size);
            if (travels) copy_bytes(all.own().payload(sequence_) + table_bytes(all), in(), bytes);
        } else if (travels && bytes != 0) {
            timer const running(*this);
            copy_for_others(all.own().payload(sequence_), in(), bytes);
        }
    }
    say.sequence.store(sequence_, std::memory_order_release);
    if (all.crowded) {
        int const processor = ::sched_getcpu();
        auto& told = all.own().here().processor;  // in a line that others read
        if (told.load(std::memory_order_relaxed) != processor) told.store(processor, std::memory_order_relaxed);
    }
    return true;
}

bool shm_operation::match(world& all) {
    if (!all_announced(all)) return false;
    check_announcements(all);
    if (largest_input(all) <= limit(all)) {
        if (!anyone_lends(all)) {
            finish_whole(all);
            return true;
        }
        if (everything_is_shared(all)) {
            start_chunks(all, way::mapped);
            return advance_chunks(all);
        }
        if (is_lent(all)) {  // not by all, so that it travels now
            timer const running(*this);
            copy_for_others(all.own().payload(sequence_), in(), what_.in.bytes());
            all.own().progress().finished.store(sequence_, std::memory_order_release);
        }
        stage_ = stage::lent;
        return advance(all);
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
    {
        timer const running(*this);
        combine(what_.in.type, what_.how, all.sources, out(), part.count, what_.scale);
    }
    note_time(all);
}

// ---- how others' input is written

void shm_operation::choose_stores(world const& all) noexcept {
    std::size_t const bytes = what_.in.bytes();
    std::size_t const most = all.crowded ? most_streamed_in_a_crowd : all.sizes.largest_gathered();
    auto const chosen = all.of(0).here().streams.load(std::memory_order_relaxed);
    streams_ = bytes >= least_streamed && (!all.crowded || bytes <= most) &&
               (reduces() ? all.stores.next_streams(chosen, bytes) : store_choice::streams(chosen, bytes));
    is_timed_ = all.rank == 0 && reduces() && bytes >= least_streamed && bytes <= most;
    ticks_ = 0;
}

void shm_operation::copy_for_others(void* to, void const* from, std::size_t bytes) noexcept {
    if (streams_)
        copy_streaming(to, from, bytes);
    else
        copy_cached(to, from, bytes);
}

void shm_operation::note_time(world& all) const noexcept {
    if (!is_timed_ || ticks_ == 0) return;
    auto const now = all.stores.note(streams_, what_.in.bytes(), static_cast<double>(ticks_));
    auto& chosen = all.own().here().streams;
    if (chosen.load(std::memory_order_relaxed) != now) chosen.store(now, std::memory_order_relaxed);
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
        case stage::lent:
            return theirs.announced(sequence_).tensors.in_shared.buffer != 0 && reached(theirs.progress().finished) < sequence_;
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

// Large collectives that are no reductions and whose tensors all lie in shared buffers: each rank copies what it is to get.

void throw_copy_failed(world const& all, int other, char const* call, int code) {
    station const& here = all.of(other).here();
    int const told = here.culprit.load(std::memory_order_relaxed);
    bool const gave_up = here.state.load(std::memory_order_acquire) == standing::failed;
    // One that gave up lets its memory go; the fault is whose it gave up because of.
    if (gave_up && told >= 0 && told < all.size && told != other && told != all.rank) {
        auto const& blamed = all.processes[static_cast<std::size_t>(told)];
        throw comm_error(errc::peer_failed,
                         fmt::format("rank {} of {}: {} gave up because of {}: {}", all.rank, all.size, name_of(all, other),
                                     name_of(all, told), describe(blamed, state_of(blamed))),
                         {told});
    }
    std::string const why = gave_up         ? "it gave up"
                            : code == ESRCH ? "its process is gone"
                                            : fmt::format("{}: {}", call, std::strerror(code));
    throw comm_error(
        errc::peer_failed,
        fmt::format("rank {} of {}: the memory of {} cannot be reached: {}", all.rank, all.size, name_of(all, other), why),
        {other});
}

void shm_operation::start_direct(world& all) {
    find_mapped(all, !all.direct);
    copy_own(all);
    stage_ = stage::direct;
    next_ = 0;
    from_ = (all.rank + 1) % all.size;
}

bool shm_operation::advance_direct(world& all) {
    std::size_t budget = budget_bytes;
    for (; from_ != all.rank; from_ = (from_ + 1) % all.size, next_ = 0) {
        pull const from = pull_from(all, from_);
        auto const at = static_cast<std::size_t>(from_);
        while (next_ < from.bytes) {
            if (budget == 0) return false;
            std::size_t const bytes = std::min(budget, from.bytes - next_);
            if (std::byte const* const near = all.near_inputs[at]; near != nullptr) {
                std::memcpy(out() + from.to + next_, near + from.from + next_, bytes);
            } else {
                auto const address = all.of(from_).announced(sequence_).tensors.in + from.from + next_;
                int const code = read_memory(all.processes[at].pid, out() + from.to + next_, address, bytes);
                if (code != 0) throw_copy_failed(all, from_, "process_vm_readv", code);
            }
            next_ += bytes;
            budget -= bytes;
        }
    }
    all.own().progress().finished.store(sequence_, std::memory_order_release);
    stage_ = stage::leave;
    return advance(all);
}

}  // namespace muster::shm
