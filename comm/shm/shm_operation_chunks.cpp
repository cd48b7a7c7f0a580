#include <algorithm>
#include <cstring>

#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/shm_operation.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::shm {

// Reductions and broadcasts in chunks.
//
// Every rank's share is cut into chunks. A rank takes those of its own share, then what is left of the others', each by adding
// one to the counter of the rank whose share it is; and it publishes how many it has done. The operation ends when all chunks
// are done, by whichever rank: a rank that comes late finds nothing to do, and no rank waits for it.
//
// When may the window be written to, and the results? Both are used in turn with the rounds of staged collectives, of which this
// counts as one. The window as there: when all others have worked the round before last. A result: when all have announced this
// collective, since then all have finished the last and fetched what they needed.
//
// A rank that gave up (its deadline passed, or it was told of a dead one) may use its memory for something else. So what was read
// counts only if all are still members afterwards. What is written: before each chunk it is made sure that all are still members;
// but a rank that is stopped within a chunk and goes on later, after the others have given up on it, still writes the rest of
// that chunk, at most chunk_bytes(), to where their tensors were. Where these were shared buffers that have been freed since,
// this reaches nobody; else only the tensors that a failed collective was to fill can be hit, whose contents are undefined then:
// leave them alone until that process has ended.

namespace {

// Measured on 2 cores with 1 MiB of second-level cache each, 2 and 4 ranks.

constexpr std::size_t smallest_chunk = std::size_t{16} << 10, largest_mapped_chunk = std::size_t{64} << 10;
constexpr std::size_t largest_copied_chunk = std::size_t{256} << 10;
constexpr std::size_t chunks_of_a_share = 4;

}  // namespace

/// Where ranks share processors nobody waits for one that has none.
bool shm_operation::gathers(world const& all) const noexcept {
    bool const few = all.sizes.largest_in_a_crowd() == all.sizes.crowd_most;  // the kernel copies faster what does not travel
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

/// The same on all ranks.
shm_operation::way shm_operation::way_of(world const& all) const noexcept {
    if (gathers(all)) return way::gathered;
    if (everything_is_shared(all)) return way::mapped;
    if (goes_in_rounds(all)) return way::staged;
    return all.direct ? way::direct : way::staged;
}

/// False if another rank still reads what is there.
bool shm_operation::fill_own_window(world& all) noexcept {
    if (all.mappable && place_of(what_.in.data, what_.in.bytes()).buffer != 0) return true;
    for (int rank = 0; rank < all.size; ++rank)
        if (rank != all.rank && all.of(rank).progress().worked.load(std::memory_order_acquire) + 1 < all.round) return false;
    copy_for_others(all.own().window(all.round), in(), what_.in.bytes());
    return true;
}

/// Of the ranks that have shared it. Those that cannot be mapped are left to the kernel, unless they must be.
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
            // Who comes when all is done may find buffers freed that it needs no more.
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

// ---- what a chunk is

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

/// Whether this rank can do that one's chunks. Of a broadcast the root can do all, the others their own and what lies in shared
/// buffers at both ends.
bool shm_operation::serves(world const& all, int owner) const noexcept {
    return reduces() || owner == all.rank || all.rank == what_.root ||
           (all.near_inputs[static_cast<std::size_t>(what_.root)] != nullptr &&
            all.near_outputs[static_cast<std::size_t>(owner)] != nullptr);
}

/// Of the root's tensor to the owner's.
void shm_operation::copy_chunk(world& all, int owner, element_range const& chunk) {
    auto const root = static_cast<std::size_t>(what_.root), there = static_cast<std::size_t>(owner);
    std::size_t const at = chunk.first * element_bytes(), bytes = chunk.count * element_bytes();
    check_membership(all);
    std::byte const* const from = all.rank == what_.root ? in() : all.near_inputs[root];
    std::byte* const to = all.rank == owner ? out() : all.near_outputs[there];
    if (from != nullptr && to != nullptr) {
        std::memcpy(to + at, from + at, bytes);
    } else if (from == nullptr) {
        int const code =
            read_memory(all.processes[root].pid, to + at, all.regions[root].announced(sequence_).tensors.in + at, bytes);
        if (code != 0) throw_copy_failed(all, what_.root, "process_vm_readv", code);
    } else {
        int const code =
            write_memory(all.processes[there].pid, from + at, all.regions[there].announced(sequence_).tensors.out + at, bytes);
        if (code != 0) throw_copy_failed(all, owner, "process_vm_writev", code);
    }
    check_membership(all);
}

/// Where the result of a chunk goes for `rank`; null if it cannot be reached here.
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
        auto const rank = static_cast<std::size_t>((all.rank + k) % all.size);  // not all at the same one at once
        auto& source = all.sources[rank];
        if (k == 0) {
            source = in() + at;
        } else if (all.near_inputs[rank] != nullptr) {
            source = all.near_inputs[rank] + at;
        } else if (way_ == way::gathered) {
            source = all.regions[rank].window(all.round) + at;
        } else {
            int const code =
                read_memory(all.processes[rank].pid, room, all.regions[rank].announced(sequence_).tensors.in + at, bytes);
            if (code != 0) throw_copy_failed(all, static_cast<int>(rank), "process_vm_readv", code);
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
        all.targets.push_back(room);  // there is room for one more: this rank's own input is not there
    combine(what_.in.type, what_.how, all.sources, all.targets, chunk.count, what_.scale);
    check_membership(all);
    if (everywhere || way_ == way::gathered) return;

    for (int k = 1; k < all.size; ++k) {
        int const rank = (all.rank + k) % all.size;
        if ((scatters && rank != owner) || all.near_outputs[static_cast<std::size_t>(rank)] != nullptr) continue;
        std::size_t const to = scatters ? at - share(all, owner).first * element_bytes() : at;
        int const code = write_memory(all.processes[static_cast<std::size_t>(rank)].pid, all.targets.front(),
                                      all.of(rank).announced(sequence_).tensors.out + to, bytes);
        if (code != 0) throw_copy_failed(all, rank, "process_vm_writev", code);
    }
}

/// Throws if a rank has given up, or left. What was read before is not read later than this.
void shm_operation::check_membership(world const& all) const {
#ifndef __SANITIZE_THREAD__  // which knows no fences, nor the memory of other processes
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    for (int rank = 0; rank < all.size; ++rank)
        if (rank != all.rank && all.of(rank).here().state.load(std::memory_order_acquire) != standing::member)
            throw_copy_failed(all, rank, "reduction", ESRCH);
}

/// What others did, unless they could reach this rank's tensor.
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

}  // namespace muster::shm
