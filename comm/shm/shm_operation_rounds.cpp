#include <algorithm>
#include <cstring>

#include "comm/shm/shm_operation.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::shm {

// Rounds through windows in the segment.
//
// Buffers are used in turn, two of each; round r uses number r % 2. When may a rank write to them again?
// - its window, in round r: when all others have worked r-2, which it waits for.
// - its result, in round r: when all others have drained r-2. A rank fills r only after it has drained r-2, and this one works on
//   r only when all have filled r. Across collectives it holds because one ends with its last drain.
// Of two ranks each leaves its result in the other's window, in place of the input that it has just read there: these lines are in its cache, and the
// other reads them before it fills its window again.

namespace {

std::atomic<std::uint64_t>& filled_of(region const& r) noexcept {
    return r.progress().filled;
}
std::atomic<std::uint64_t>& worked_of(region const& r) noexcept {
    return r.progress().worked;
}

/// Whether every other rank's number is at least `number`.
template <typename Of>
bool all_at(world const& all, std::uint64_t number, Of of) noexcept {
    for (int rank = 0; rank < all.size; ++rank)
        if (rank != all.rank && of(all.of(rank)).load(std::memory_order_acquire) < number) return false;
    return true;
}

}  // namespace

/// Where the result of that rank's share is left for the others.
std::byte* shm_operation::result_of(world const& all, int rank, std::uint64_t round) const noexcept {
    if (all.size != 2) return all.of(rank).result(round);
    return all.of(1 - rank).window(round) + static_cast<std::size_t>(rank) * all.sizes.share_bytes();
}

/// Whether a reduction goes in rounds although the kernel could copy: of each input the shares of the others alone are written and read once more.
bool shm_operation::goes_in_rounds(world const& all) const noexcept {
    return reduces() && !all.crowded && what_.in.bytes() > limit(all) && what_.in.bytes() <= all.sizes.largest_gathered();
}

/// The first window, before it is known whether the other ranks' tensors are shared. False if another rank still reads what is there.
bool shm_operation::fill_ahead(world& all) {
    if (all.mappable && place_of(what_.in.data, what_.in.bytes()).buffer != 0) return true;
    if (all.round != 0 && !all_at(all, all.round - 1, worked_of)) return false;
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

/// What of `rank`'s share this round takes.
element_range shm_operation::piece_of(world const& all, int rank, std::uint64_t round) const noexcept {
    element_range const whole = share(all, rank);
    std::size_t const most = all.sizes.share_bytes() / element_bytes();
    std::size_t const done = std::min(whole.count, static_cast<std::size_t>(round - first_) * most);
    return {whole.first + done, std::min(most, whole.count - done)};
}

// ---- what only moves

/// Of a window that one rank reads: all of it, where all others get the same.
std::size_t shm_operation::slot_bytes(world const& all) const noexcept {
    return what_.what == collective::kind::alltoall ? all.sizes.share_bytes() : all.sizes.window_bytes;
}

/// The most bytes that one rank gets from one.
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

/// What this round brings from `rank`, which may be this one.
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
        for (int k = 1; k < all.size; ++k) take(all, (all.rank + k) % all.size, round);  // not all at the same one at once
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

}  // namespace muster::shm
