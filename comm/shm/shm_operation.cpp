#include "comm/shm/shm_operation.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/rank_parts.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/tensor/reduction_kernels.hpp"
#include "comm/tensor/simd.hpp"

namespace muster::shm {

namespace {

// These sizes were measured on 2 cores with 1 MiB of second-level cache each, 2 and 4 ranks.

/// A reduction's input travels with the announcement up to this size of all ranks together. If ranks share processors, waits cost more: see geometry.
constexpr std::size_t whole_reduction_bytes = std::size_t{64} << 10;
/// … up to this size of each of two ranks: beyond it, halves move fewer bytes, for two more waits.
constexpr std::size_t whole_of_two = std::size_t{16} << 10;

/// If each rank has a processor, the others' announcements mostly come within the 0.4 us that these polls take: then start() ends the collective.
constexpr unsigned polls_at_once = 32;

/// From this size on it pays to write past the caches if the processors are far apart, and rank 0 takes the time.
constexpr std::size_t least_streamed = std::size_t{4} << 10;
/// … up to this size if ranks share processors: larger tensors take longer than a rank has its processor at a time, so that times say little.
constexpr std::size_t most_streamed_in_a_crowd = std::size_t{128} << 10;

/// From this size on a reduction's input in a shared buffer does not travel, for one more wait.
constexpr std::size_t lent_bytes = std::size_t{8} << 10, lent_in_a_crowd = std::size_t{32} << 10;

/// An alltoall puts two tables at the head of a payload: what is sent to each rank, then what is expected from each.
std::size_t table_bytes(world const& all) noexcept {
    return (2 * static_cast<std::size_t>(all.size) * sizeof(std::uint64_t) + line_bytes - 1) / line_bytes * line_bytes;
}

void copy_bytes(void* to, void const* from, std::size_t bytes) noexcept {
    if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

std::atomic<std::uint64_t>& filled_of(region const& r) noexcept {
    return r.progress().filled;
}
std::atomic<std::uint64_t>& worked_of(region const& r) noexcept {
    return r.progress().worked;
}

/// Returns whether every other rank's number is at least `number`.
template <typename Of>
bool all_at(world const& all, std::uint64_t number, Of of) noexcept {
    for (int rank = 0; rank < all.size; ++rank)
        if (rank != all.rank && of(all.of(rank)).load(std::memory_order_acquire) < number) return false;
    return true;
}

/// Returns whether no other rank reads this rank's window of the next round any more.
bool window_is_free(world const& all) noexcept {
    return all.round == 0 || all_at(all, all.round - 1, worked_of);
}

/// Copies from another rank's memory. Throws as throw_copy_failed() does.
void fetch(world const& all, int rank, void* to, std::uintptr_t from, std::size_t bytes) {
    int const code = read_memory(all.processes[static_cast<std::size_t>(rank)].pid, to, from, bytes);
    if (code != 0) throw_copy_failed(all, rank, "process_vm_readv", code);
}

/// Copies to another rank's memory. Throws as throw_copy_failed() does.
void put(world const& all, int rank, void const* from, std::uintptr_t to, std::size_t bytes) {
    int const code = write_memory(all.processes[static_cast<std::size_t>(rank)].pid, from, to, bytes);
    if (code != 0) throw_copy_failed(all, rank, "process_vm_writev", code);
}

}  // namespace

// ---- places

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

/// Returns whether others may read this rank's input where it lies, though it is small enough to travel.
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

/// Returns the place of the input that travelled with the announcement, or after it.
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

/// Every rank except the root gets all of a broadcast's tensor.
element_range shm_operation::share(world const& all, int rank) const noexcept {
    if (broadcasts()) return {0, rank == what_.root ? 0 : what_.in.count};
    if (what_.what == collective::kind::reducescatter) return share_of(what_.in.count, all.size, rank);
    return detail::line_share_of(what_.in.count, element_bytes(), all.size, rank);
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

/// Goes on from the rank at which it stopped last time: ranks that were there stay there.
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

/// Returns false if this rank cannot announce yet.
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
        auto& told = all.own().here().processor;  // a line that others read
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
        if (is_lent(all)) {  // not all lend, so it travels now
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

/// All ranks compare the same announcements and so get the same result.
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

/// Every rank checks all pairs, so that all ranks fail if one does.
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

// ---- the stores of what others read

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

// ---- missing ranks

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

// Large collectives other than reductions whose tensors all lie in shared buffers: each rank copies what it gets.

void throw_copy_failed(world const& all, int other, char const* call, int code) {
    station const& here = all.of(other).here();
    int const told = here.culprit.load(std::memory_order_relaxed);
    bool const gave_up = here.state.load(std::memory_order_acquire) == standing::failed;
    // A rank that gave up releases its memory; the rank that made it give up is at fault.
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
                fetch(all, from_, out() + from.to + next_, address, bytes);
            }
            next_ += bytes;
            budget -= bytes;
        }
    }
    all.own().progress().finished.store(sequence_, std::memory_order_release);
    stage_ = stage::leave;
    return advance(all);
}

// Reductions and broadcasts in chunks.
//
// Every rank's share is cut into chunks. A rank takes those of its share, then the remaining ones of the others', each by
// adding one to the counter of the rank whose share it is; and it publishes how many it has done. The operation ends when all
// chunks are done, by any rank: a rank that comes late finds nothing to do, and no rank waits for it.
//
// When may a rank write to the window and to the results? It has two of each, used in turn with the rounds of staged collectives;
// this counts as one round. It may write to the window, as there, when all others have worked the round before last, and to a
// result when all have announced this collective, since all have then finished the last one and fetched what they needed.
//
// A rank that gave up (its deadline passed, or it learned of a dead one) may use its memory for something else. So what was read
// counts only if all are still members afterwards. Before each chunk is written, all must still be members; but a rank that is
// stopped within a chunk and goes on later, after the others have given up on it, still writes the rest of that chunk, at most
// chunk_bytes(), to where their tensors were. If these were shared buffers that have been freed since, that harms nobody;
// otherwise it can only hit the tensors that a failed collective should have filled, whose contents are undefined: do not use
// them until that process has ended.

namespace {

// These sizes were measured on 2 cores with 1 MiB of second-level cache each, 2 and 4 ranks.

constexpr std::size_t smallest_chunk = std::size_t{16} << 10, largest_mapped_chunk = std::size_t{64} << 10;
constexpr std::size_t largest_copied_chunk = std::size_t{256} << 10;
constexpr std::size_t chunks_of_a_share = 4;

}  // namespace

/// If ranks share processors, nobody should wait for one that has no processor.
bool shm_operation::gathers(world const& all) const noexcept {
    bool const few = all.sizes.largest_in_a_crowd() == all.sizes.crowd_most;  // beyond what travels, the kernel copies faster
    return all.crowded && what_.in.bytes() <= all.sizes.largest_gathered() && !(few && all.direct);
}

bool shm_operation::everything_is_shared(world const& all) const noexcept {
    for (int rank = 0; rank < all.size; ++rank) {
        announcement const& said = all.of(rank).announced(sequence_);
        if (said.tensors.in_shared.buffer == 0 && input_bytes(all, rank) != 0) return false;
        bool const gets = reduces() || (broadcasts() && rank != what_.root);
        if (gets && said.tensors.out_shared.buffer == 0) return false;
    }
    return true;
}

/// Returns the same on all ranks.
shm_operation::way shm_operation::way_of(world const& all) const noexcept {
    if (gathers(all)) return way::gathered;
    if (everything_is_shared(all)) return way::mapped;
    if (goes_in_rounds(all)) return way::staged;
    return all.direct ? way::direct : way::staged;
}

/// Returns false if another rank still reads what is there.
bool shm_operation::fill_own_window(world& all) noexcept {
    if (all.mappable && place_of(what_.in.data, what_.in.bytes()).buffer != 0) return true;
    if (!window_is_free(all)) return false;
    copy_for_others(all.own().window(all.round), in(), what_.in.bytes());
    return true;
}

/// Maps the tensors of the ranks that have shared them. Leaves those that it cannot map to the kernel, unless `must`.
void shm_operation::find_mapped(world& all, bool must) const {
    for (int rank = 0; rank < all.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        announcement const& said = all.of(rank).announced(sequence_);
        all.near_inputs[at] = all.near_outputs[at] = nullptr;
        if (rank == all.rank || (said.tensors.in_shared.buffer == 0 && said.tensors.out_shared.buffer == 0)) continue;
        mapped_buffers& theirs = all.mapped[at];
        theirs.tidy();
        auto const find = [&](shared_place const& place, std::size_t bytes) {
            int code = 0;
            std::byte* const found = place.buffer == 0 ? nullptr : theirs.find(all.owners[at], place, bytes, code);
            // A rank that comes when all is done may find buffers freed that it no longer needs.
            bool const late = stage_ == stage::chunks && chunks_are_done(all);
            if (place.buffer != 0 && found == nullptr && must && !late) throw_copy_failed(all, rank, "mmap", code);
            return found;
        };
        std::size_t const out_bytes =
            what_.what == collective::kind::reducescatter ? share(all, rank).count * element_bytes() : what_.out.bytes();
        all.near_inputs[at] = find(said.tensors.in_shared, input_bytes(all, rank));
        all.near_outputs[at] = find(said.tensors.out_shared, out_bytes);
    }
}

// ---- chunks

std::size_t shm_operation::chunk_elements(world const& all) const noexcept {
    std::size_t const largest = broadcasts() ? what_.in.count : share(all, 0).count;
    std::size_t const whole = largest * element_bytes() / chunks_of_a_share;
    std::size_t most = largest_mapped_chunk, unit = line_bytes;
    if (broadcasts()) {
        most = largest_copied_chunk;
    } else if (way_ == way::direct) {
        most = scratch_bytes / static_cast<std::size_t>(all.size);
        if (most >= page_bytes) unit = page_bytes;
    }
    return std::max(std::clamp(whole, std::min(smallest_chunk, most), most) / unit * unit, unit) / element_bytes();
}

std::size_t shm_operation::chunks_in(world const& all, element_range const& whole) const noexcept {
    std::size_t const most = chunk_elements(all);
    return (whole.count + most - 1) / most;
}

element_range shm_operation::chunk_of(world const& all, int owner, std::size_t number) const noexcept {
    element_range const whole = share(all, owner);
    std::size_t const most = chunk_elements(all), done = number * most;
    return {whole.first + done, std::min(most, whole.count - done)};
}

// ---- the work

void shm_operation::start_chunks(world& all, way how) {
    way_ = how;
    stage_ = stage::chunks;
    turn_ = 0;
    total_ = 0;
    for (int rank = 0; rank < all.size; ++rank) total_ += chunks_in(all, share(all, rank));
    all.own().chunks(sequence_).joined.store(sequence_, std::memory_order_release);
    find_mapped(all, how != way::direct);
    if (how != way::gathered) return;
    own_.assign(index_of(all, all.size, 0), false);
    all.own().progress().filled.store(all.round + 1, std::memory_order_release);
}

bool shm_operation::advance_chunks(world& all) {
    std::size_t budget = budget_bytes;
    auto& done = all.own().chunks(sequence_).done;
    for (; turn_ < all.size; ++turn_) {
        int const owner = (all.rank + turn_) % all.size;
        if (!serves(all, owner)) continue;
        auto& claimed = all.of(owner).chunks(sequence_).claimed;
        std::size_t const chunks = chunks_in(all, share(all, owner));
        while (claimed.load(std::memory_order_relaxed) < chunks) {
            if (budget == 0) return false;
            auto const number = static_cast<std::size_t>(claimed.fetch_add(1, std::memory_order_relaxed));
            if (number >= chunks) break;
            element_range const chunk = chunk_of(all, owner, number);
            if (broadcasts())
                copy_chunk(all, owner, chunk);
            else
                do_chunk(all, owner, chunk);
            if (way_ == way::gathered) own_[index_of(all, owner, number)] = true;
            done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
            budget -= std::min(budget, chunk.count * element_bytes() * static_cast<std::size_t>(all.size));
        }
    }
    all.own().progress().finished.store(sequence_, std::memory_order_release);
    stage_ = stage::chunks_end;
    return end_chunks(all);
}

bool shm_operation::chunks_are_done(world const& all) const noexcept {
    std::uint64_t done = 0;
    for (int rank = 0; rank < all.size; ++rank) done += all.of(rank).chunks(sequence_).done.load(std::memory_order_acquire);
    return done >= total_;
}

bool shm_operation::end_chunks(world& all) {
    if (!chunks_are_done(all)) return false;
    if (way_ != way::gathered) return true;
    fetch_results(all);
    all.own().progress().worked.store(++all.round, std::memory_order_release);
    return true;
}

/// Returns whether this rank can do that one's chunks. In a broadcast the root can do all, the others their own and what lies in
/// shared buffers at both ends.
bool shm_operation::serves(world const& all, int owner) const noexcept {
    return reduces() || owner == all.rank || all.rank == what_.root ||
           (all.near_inputs[static_cast<std::size_t>(what_.root)] != nullptr &&
            all.near_outputs[static_cast<std::size_t>(owner)] != nullptr);
}

/// Copies it from the root's tensor to the owner's.
void shm_operation::copy_chunk(world& all, int owner, element_range const& chunk) {
    auto const root = static_cast<std::size_t>(what_.root), there = static_cast<std::size_t>(owner);
    std::size_t const at = chunk.first * element_bytes(), bytes = chunk.count * element_bytes();
    check_membership(all);
    std::byte const* const from = all.rank == what_.root ? in() : all.near_inputs[root];
    std::byte* const to = all.rank == owner ? out() : all.near_outputs[there];
    if (from != nullptr && to != nullptr) {
        std::memcpy(to + at, from + at, bytes);
    } else if (from == nullptr) {
        fetch(all, what_.root, to + at, all.regions[root].announced(sequence_).tensors.in + at, bytes);
    } else {
        put(all, owner, from + at, all.regions[there].announced(sequence_).tensors.out + at, bytes);
    }
    check_membership(all);
}

/// Returns where the result of a chunk goes for `rank`; null if this rank cannot reach it.
void* shm_operation::chunk_target(world& all, int rank, int owner, element_range const& chunk) const noexcept {
    std::size_t first = chunk.first;
    if (what_.what == collective::kind::reducescatter) first -= share(all, owner).first;
    std::byte* const tensor = rank == all.rank ? out() : all.near_outputs[static_cast<std::size_t>(rank)];
    return tensor == nullptr ? nullptr : tensor + first * element_bytes();
}

void shm_operation::do_chunk(world& all, int owner, element_range const& chunk) {
    bool const scatters = what_.what == collective::kind::reducescatter;
    std::size_t const at = chunk.first * element_bytes(), bytes = chunk.count * element_bytes();
    check_membership(all);
    std::byte* room = all.scratch.get();
    std::size_t const step = (bytes + line_bytes - 1) / line_bytes * line_bytes;
    for (int k = 0; k < all.size; ++k) {
        auto const rank = static_cast<std::size_t>((all.rank + k) % all.size);  // not all start with the same rank
        auto& source = all.sources[rank];
        if (k == 0) {
            source = in() + at;
        } else if (all.near_inputs[rank] != nullptr) {
            source = all.near_inputs[rank] + at;
        } else if (way_ == way::gathered) {
            source = all.regions[rank].window(all.round) + at;
        } else {
            fetch(all, static_cast<int>(rank), room, all.regions[rank].announced(sequence_).tensors.in + at, bytes);
            source = room;
            room += step;
        }
    }

    all.targets.clear();
    bool everywhere = true;
    for (int k = 0; k < all.size; ++k) {
        int const rank = (all.rank + k) % all.size;
        if (scatters && rank != owner) continue;
        void* const target = chunk_target(all, rank, owner, chunk);
        if (target != nullptr)
            all.targets.push_back(target);
        else
            everywhere = false;
    }
    if (!everywhere && way_ == way::gathered)
        all.targets.push_back(all.of(owner).result(all.round) + (chunk.first - share(all, owner).first) * element_bytes());
    else if (all.targets.empty())
        all.targets.push_back(room);  // there is room for one more, since this rank's own input is not there
    combine(what_.in.type, what_.how, all.sources, all.targets, chunk.count, what_.scale);
    check_membership(all);
    if (everywhere || way_ == way::gathered) return;

    for (int k = 1; k < all.size; ++k) {
        int const rank = (all.rank + k) % all.size;
        if ((scatters && rank != owner) || all.near_outputs[static_cast<std::size_t>(rank)] != nullptr) continue;
        std::size_t const to = scatters ? at - share(all, owner).first * element_bytes() : at;
        put(all, rank, all.targets.front(), all.of(rank).announced(sequence_).tensors.out + to, bytes);
    }
}

/// Throws if a rank has given up, or left. The fence keeps earlier reads before the check.
void shm_operation::check_membership(world const& all) const {
#ifndef __SANITIZE_THREAD__  // it knows neither fences nor the memory of other processes
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    for (int rank = 0; rank < all.size; ++rank)
        if (rank != all.rank && all.of(rank).here().state.load(std::memory_order_acquire) != standing::member)
            throw_copy_failed(all, rank, "reduction", ESRCH);
}

/// Copies what others reduced, unless they could reach this rank's tensor.
void shm_operation::fetch_results(world& all) const noexcept {
    if (all.own().announced(sequence_).tensors.out_shared.buffer != 0) return;
    for (int owner = 0; owner < all.size; ++owner) {
        if (what_.what == collective::kind::reducescatter && owner != all.rank) continue;
        element_range const whole = share(all, owner);
        std::size_t const chunks = chunks_in(all, whole);
        for (std::size_t number = 0; number < chunks; ++number) {
            if (own_[index_of(all, owner, number)]) continue;
            element_range const chunk = chunk_of(all, owner, number);
            std::byte const* const from = all.of(owner).result(all.round) + (chunk.first - whole.first) * element_bytes();
            std::memcpy(chunk_target(all, all.rank, owner, chunk), from, chunk.count * element_bytes());
        }
    }
}

// Rounds through windows in the segment.
//
// Each rank has two buffers of a kind; round r uses number r % 2. When may a rank write to them again?
// - to its window, in round r: when all others have worked r-2, which it waits for.
// - to its result, in round r: when all others have drained r-2. A rank fills r only after it has drained r-2, and this one works on
//   r only when all have filled r. It also holds across collectives, because one ends with its last drain.
// Two ranks each leave their result in the other's window, in place of the input that they have just read there: these lines are in the rank's cache,
// and the other reads them before it fills its window again.

/// Returns where that rank leaves the result of its share for the others.
std::byte* shm_operation::result_of(world const& all, int rank, std::uint64_t round) const noexcept {
    if (all.size != 2) return all.of(rank).result(round);
    return all.of(1 - rank).window(round) + static_cast<std::size_t>(rank) * all.sizes.share_bytes();
}

/// Returns whether a reduction goes in rounds although the kernel could copy: they write and read only the others' shares of each input once more.
bool shm_operation::goes_in_rounds(world const& all) const noexcept {
    return reduces() && !all.crowded && what_.in.bytes() > limit(all) && what_.in.bytes() <= all.sizes.largest_gathered();
}

/// Fills the first window, before it is known whether the other ranks share their tensors. Returns false if another rank still reads
/// what is there.
bool shm_operation::fill_ahead(world& all) {
    if (all.mappable && place_of(what_.in.data, what_.in.bytes()).buffer != 0) return true;
    if (!window_is_free(all)) return false;
    first_ = all.round;
    fill(all, first_);
    all.own().progress().filled.store(first_ + 1, std::memory_order_release);
    is_ahead_ = true;
    return true;
}

void shm_operation::start_staged(world& all) noexcept {
    stage_ = stage::staged;
    std::size_t rounds = 0;
    if (reduces()) {
        std::size_t const per_round = all.sizes.share_bytes() / element_bytes();
        rounds = (share(all, 0).count + per_round - 1) / per_round;  // the first share is the largest
    } else {
        rounds = (longest_stream(all) + slot_bytes(all) - 1) / slot_bytes(all);
    }
    first_ = filled_ = worked_ = drained_ = all.round;
    end_ = first_ + rounds;
    if (is_ahead_) ++filled_;
}

bool shm_operation::advance_staged(world& all) {
    counters& own = all.own().progress();
    for (bool moved = true; moved && drained_ < end_;) {
        moved = false;
        if (filled_ < end_ && filled_ < drained_ + 2 && (filled_ == 0 || all_at(all, filled_ - 1, worked_of))) {
            fill(all, filled_);
            own.filled.store(++filled_, std::memory_order_release);
            if (!reduces()) take(all, all.rank, filled_ - 1);  // while the others come
            moved = true;
        }
        if (worked_ < filled_ && all_at(all, worked_ + 1, filled_of)) {
            work(all, worked_);
            own.worked.store(++worked_, std::memory_order_release);
            moved = true;
        }
        if (drained_ < worked_ && (what_.what != collective::kind::allreduce || all_at(all, drained_ + 1, worked_of))) {
            drain(all, drained_);
            ++drained_;
            moved = true;
        }
    }
    if (drained_ < end_) return false;
    all.round = end_;
    note_time(all);
    return true;
}

/// Returns the part of `rank`'s share that this round takes.
element_range shm_operation::piece_of(world const& all, int rank, std::uint64_t round) const noexcept {
    element_range const whole = share(all, rank);
    std::size_t const most = all.sizes.share_bytes() / element_bytes();
    std::size_t const done = std::min(whole.count, static_cast<std::size_t>(round - first_) * most);
    return {whole.first + done, std::min(most, whole.count - done)};
}

// ---- collectives without a reduction

/// Returns the part of a window that one rank reads: all of it if all others get the same.
std::size_t shm_operation::slot_bytes(world const& all) const noexcept {
    return what_.what == collective::kind::alltoall ? all.sizes.share_bytes() : all.sizes.window_bytes;
}

/// Returns the most bytes that one rank gets from one.
std::size_t shm_operation::longest_stream(world const& all) const noexcept {
    if (what_.what != collective::kind::alltoall) return largest_input(all);
    std::uint64_t most = 0;
    for (int rank = 0; rank < all.size; ++rank) {
        auto const* const table = reinterpret_cast<std::uint64_t const*>(all.of(rank).payload(sequence_));
        most = std::max(most, *std::max_element(table, table + all.size));
    }
    return static_cast<std::size_t>(most) * element_bytes();
}

void shm_operation::fill_slots(world& all, std::uint64_t round) const noexcept {
    std::byte* const window = all.own().window(round);
    std::size_t const slot = slot_bytes(all), done = static_cast<std::size_t>(round - first_) * slot;
    auto const put = [&](std::size_t first, std::size_t bytes, std::byte* to) {
        if (done < bytes) std::memcpy(to, in() + first + done, std::min(slot, bytes - done));
    };
    if (what_.what != collective::kind::alltoall) return put(0, input_bytes(all, all.rank), window);
    std::size_t first = 0;
    for (int rank = 0; rank < all.size; ++rank) {
        std::size_t const bytes = what_.send_counts[static_cast<std::size_t>(rank)] * element_bytes();
        if (rank != all.rank) put(first, bytes, window + static_cast<std::size_t>(rank) * slot);
        first += bytes;
    }
}

/// Copies what this round brings from `rank`, which may be this one.
void shm_operation::take(world const& all, int rank, std::uint64_t round) const noexcept {
    std::size_t const slot = slot_bytes(all), done = static_cast<std::size_t>(round - first_) * slot;
    pull const next = pull_from(all, rank);
    if (done >= next.bytes) return;
    bool const own_slots = what_.what == collective::kind::alltoall;
    std::byte const* const from = rank == all.rank
                                      ? in() + next.from + done
                                      : all.of(rank).window(round) + (own_slots ? static_cast<std::size_t>(all.rank) * slot : 0);
    std::byte* const to = out() + next.to + done;
    if (to != from) std::memcpy(to, from, std::min(slot, next.bytes - done));
}

// ---- rounds

void shm_operation::fill(world& all, std::uint64_t round) noexcept {
    std::byte* const window = all.own().window(round);
    if (!reduces()) return fill_slots(all, round);
    timer const running(*this);
    for (int rank = 0; rank < all.size; ++rank) {
        if (rank == all.rank) continue;
        element_range const piece = piece_of(all, rank, round);
        if (piece.count != 0)
            copy_for_others(window + static_cast<std::size_t>(rank) * all.sizes.share_bytes(),
                            in() + piece.first * element_bytes(), piece.count * element_bytes());
    }
}

void shm_operation::work(world& all, std::uint64_t round) noexcept {
    if (!reduces()) {
        for (int k = 1; k < all.size; ++k) take(all, (all.rank + k) % all.size, round);  // not all start with the same rank
        return;
    }
    element_range const piece = piece_of(all, all.rank, round);
    if (piece.count == 0) return;
    timer const running(*this);
    for (int rank = 0; rank < all.size; ++rank)
        all.sources[static_cast<std::size_t>(rank)] =
            rank == all.rank ? in() + piece.first * element_bytes()
                             : all.of(rank).window(round) + static_cast<std::size_t>(all.rank) * all.sizes.share_bytes();
    bool const scatters = what_.what == collective::kind::reducescatter;
    std::size_t const first = piece.first - (scatters ? share(all, all.rank).first : 0);
    all.targets.assign(1, out() + first * element_bytes());
    if (!scatters && !streams_) all.targets.push_back(result_of(all, all.rank, round));
    combine(what_.in.type, what_.how, all.sources, all.targets, piece.count, what_.scale);
    if (!scatters && streams_)
        copy_for_others(result_of(all, all.rank, round), all.targets.front(), piece.count * element_bytes());
}

void shm_operation::drain(world& all, std::uint64_t round) noexcept {
    if (what_.what != collective::kind::allreduce) return;
    timer const running(*this);
    for (int rank = 0; rank < all.size; ++rank) {
        if (rank == all.rank) continue;
        element_range const piece = piece_of(all, rank, round);
        if (piece.count != 0)
            std::memcpy(out() + piece.first * element_bytes(), result_of(all, rank, round), piece.count * element_bytes());
    }
}

// The sendrecv of two ranks. Its announcements lie apart from those of collectives, so that the two kinds do not count each
// other's numbers. One announcement a pair is enough: a sendrecv ends only when both ranks have finished reading.

void shm_operation::announce_pair(world& all) {
    auto const peer = static_cast<std::size_t>(what_.root);
    sequence_ = ++all.pair_sequence[peer];
    announcement& say = all.own().announced_to(peer);
    say.signature = signature_of(what_);
    say.count = what_.in.count;
    say.tensors.in = reinterpret_cast<std::uintptr_t>(what_.in.data);
    say.tensors.out = what_.out.count;
    say.sequence.store(sequence_, std::memory_order_release);
    stage_ = stage::pair_match;
}

std::size_t shm_operation::pair_rounds(world const& all, std::size_t bytes) const noexcept {
    return (bytes + all.sizes.pair_bytes - 1) / all.sizes.pair_bytes;
}

bool shm_operation::match_pair(world& all) {
    announcement const& mine = all.own().announced_to(static_cast<std::size_t>(what_.root));
    announcement const& theirs = all.of(what_.root).announced_to(static_cast<std::size_t>(all.rank));
    if (theirs.sequence.load(std::memory_order_acquire) < sequence_) return false;
    if (theirs.signature != mine.signature || theirs.count != mine.tensors.out || theirs.tensors.out != mine.count)
        throw comm_error(
            errc::peer_failed,
            fmt::format("sendrecv on rank {} ({}): this rank sends {} and receives {} elements of {}, {} sends {} and "
                        "receives {} of {}",
                        all.rank, all.hosts[static_cast<std::size_t>(all.rank)], mine.count, mine.tensors.out,
                        to_string(what_.in.type), name_of(all, what_.root), theirs.count, theirs.tensors.out,
                        theirs.signature == mine.signature ? "them" : "another type"),
            {what_.root});
    auto const peer = static_cast<std::size_t>(what_.root);
    next_ = 0;
    filled_ = all.pair_filled[peer];
    worked_ = all.pair_worked[peer];
    stage_ = stage::pair_rounds;
    return advance_pair(all);
}

bool shm_operation::advance_pair(world& all) {
    auto const peer = static_cast<std::size_t>(what_.root);
    counters& own = all.own().progress_with(peer);
    counters const& theirs = all.of(what_.root).progress_with(static_cast<std::size_t>(all.rank));
    std::size_t const pair_bytes = all.sizes.pair_bytes;
    if (all.direct && std::max(what_.in.bytes(), what_.out.bytes()) > pair_bytes) {
        auto const address = all.of(what_.root).announced_to(static_cast<std::size_t>(all.rank)).tensors.in;
        if (next_ < what_.out.bytes()) {
            std::size_t const bytes = std::min(std::size_t{4} << 20, what_.out.bytes() - next_);
            fetch(all, what_.root, out() + next_, address + next_, bytes);
            next_ += bytes;
            if (next_ < what_.out.bytes()) return false;
        }
    } else {
        std::uint64_t const send_end = all.pair_filled[peer] + pair_rounds(all, what_.in.bytes());
        std::uint64_t const receive_end = all.pair_worked[peer] + pair_rounds(all, what_.out.bytes());
        for (bool moved = true; moved;) {
            moved = false;
            if (filled_ < send_end && (filled_ == 0 || theirs.worked.load(std::memory_order_acquire) >= filled_ - 1)) {
                std::size_t const at = static_cast<std::size_t>(filled_ - all.pair_filled[peer]) * pair_bytes;
                std::memcpy(all.own().pair_buffer(filled_), in() + at, std::min(pair_bytes, what_.in.bytes() - at));
                own.filled.store(++filled_, std::memory_order_release);
                moved = true;
            }
            if (worked_ < receive_end && theirs.filled.load(std::memory_order_acquire) >= worked_ + 1) {
                std::size_t const at = static_cast<std::size_t>(worked_ - all.pair_worked[peer]) * pair_bytes;
                std::memcpy(out() + at, all.of(what_.root).pair_buffer(worked_), std::min(pair_bytes, what_.out.bytes() - at));
                own.worked.store(++worked_, std::memory_order_release);
                moved = true;
            }
        }
        if (filled_ < send_end || worked_ < receive_end) return false;
        all.pair_filled[peer] = filled_;
        all.pair_worked[peer] = worked_;
    }
    own.finished.store(sequence_, std::memory_order_release);
    stage_ = stage::pair_leave;
    return advance(all);
}

}  // namespace muster::shm
