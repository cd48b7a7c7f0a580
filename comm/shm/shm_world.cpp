
#include "comm/shm/shm_world.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace muster::shm {

world make_world(std::shared_ptr<shared_memory> memory, geometry const& sizes, int rank) {
    world made;
    made.rank = rank;
    made.size = static_cast<int>(sizes.ranks);
    made.sizes = sizes;
    made.memory = std::move(memory);
    made.processes.resize(sizes.ranks);
    made.hosts.resize(sizes.ranks);
    made.pair_sequence.resize(sizes.ranks);
    made.pair_filled.resize(sizes.ranks);
    made.pair_worked.resize(sizes.ranks);
    made.sources.resize(sizes.ranks);
    made.targets.reserve(sizes.ranks + 1);
    made.mapped.resize(sizes.ranks);
    made.owners.resize(sizes.ranks);
    made.near_inputs.resize(sizes.ranks);
    made.near_outputs.resize(sizes.ranks);
    made.scratch = make_aligned(scratch_bytes);
    return made;
}

void divide(world& all) {
    all.regions.clear();
    for (std::size_t rank = 0; rank < all.sizes.ranks; ++rank)
        all.regions.emplace_back(all.memory->data() + rank * all.sizes.region_bytes(), all.sizes);
}

std::string name_of(world const& all, int rank) {
    auto const at = static_cast<std::size_t>(rank);
    return fmt::format("rank {} on {} (process {})", rank, all.hosts[at], all.processes[at].pid);
}

position position_of(world const& all, int rank) noexcept {
    region const& theirs = all.of(rank);
    auto const announced = [&](std::uint64_t which) { return theirs.announced(which).sequence.load(std::memory_order_acquire); };
    counters const& far = theirs.progress();
    return {std::max(announced(0), announced(1)), far.filled.load(std::memory_order_acquire) +
                                                      far.worked.load(std::memory_order_acquire) +
                                                      far.finished.load(std::memory_order_acquire)};
}

std::vector<late_rank> blame(world const& all, std::vector<int> const& missing, std::uint64_t sequence) {
    std::vector<late_rank> culprits, slow;
    position least{~std::uint64_t{0}, 0};
    for (int const rank : missing) {
        auto const& who = all.processes[static_cast<std::size_t>(rank)];
        station const& here = all.of(rank).here();
        auto const state = state_of(who);
        auto const stands = here.state.load(std::memory_order_acquire);
        auto const told = here.culprit.load(std::memory_order_relaxed);
        if (stands == standing::failed && told >= 0 && told < all.size && told != rank && told != all.rank) {
            // It will not come, but another rank is to blame.
            auto const& blamed = all.processes[static_cast<std::size_t>(told)];
            culprits.push_back(
                {told, true, fmt::format("rank {} gave up because of it; {}", rank, describe(blamed, state_of(blamed)))});
        } else if (state == process_state::gone) {
            culprits.push_back({rank, true, describe(who, state)});
        } else if (stands == standing::failed) {
            culprits.push_back({rank, true, told == all.rank ? "it gave up waiting for this rank" : "it gave up"});
        } else if (stands == standing::left) {
            culprits.push_back({rank, true, "it has destroyed its communicator"});
        } else if (state == process_state::stopped) {
            culprits.push_back({rank, false, describe(who, state)});
        } else {
            position const where = position_of(all, rank);
            if (where < least) slow.clear();
            if (where > least) continue;
            least = where;
            slow.push_back({rank, false,
                            where.sequence < sequence
                                ? fmt::format("process {} is {} behind this one, muster's own included", who.pid,
                                              counted(static_cast<std::int64_t>(sequence - where.sequence), "collective"))
                                : fmt::format("process {} has started it but does not go on", who.pid)});
        }
    }
    // A missing rank may itself wait, in another operation, for a rank that cannot come.
    if (culprits.empty())
        for (int rank = 0; rank < all.size; ++rank) {
            auto const& who = all.processes[static_cast<std::size_t>(rank)];
            auto const state = state_of(who);
            if (rank == all.rank || (state != process_state::stopped && state != process_state::gone) ||
                all.of(rank).here().state.load(std::memory_order_acquire) == standing::left)
                continue;
            culprits.push_back({rank, false, describe(who, state)});
        }
    auto& chosen = culprits.empty() ? slow : culprits;
    std::stable_sort(chosen.begin(), chosen.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    auto const same = [](auto const& a, auto const& b) { return a.rank == b.rank; };
    chosen.erase(std::unique(chosen.begin(), chosen.end(), same), chosen.end());
    return chosen;
}

namespace {

buffer_note& note_at(shared_memory const& memory, std::size_t bytes) noexcept {
    return *std::launder(reinterpret_cast<buffer_note*>(memory.data() + bytes));
}

}  // namespace

std::byte* mapped_buffers::find(buffers_owner const& owner, shared_place const& place, std::size_t bytes, int& code) {
    for (std::size_t i = 0; i < mapped_.size(); ++i) {
        std::size_t const at = (last_ + i) % mapped_.size();
        entry& each = mapped_[at];
        if (each.buffer != place.buffer) continue;
        last_ = at;
        each.used = ++uses_;
        if (place.offset <= each.bytes && bytes <= each.bytes - place.offset) return each.memory.data() + place.offset;
        code = EBADF;
        return nullptr;
    }
    unique_fd const file(
        ::open(fmt::format("/proc/{}/fd/{}", owner.pid, place.file).c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0) {
        code = errno == ENOENT ? ESRCH : errno;
        return nullptr;
    }
    // The owner may have closed it and reused its number for another file, or the number may mean another process here. Nothing
    // is written to a file before its note has proven that it is the right one.
    auto const size = static_cast<std::size_t>(about.st_size);
    std::size_t const note_bytes = whole_pages(sizeof(buffer_note));
    code = EBADF;
    if (about.st_dev != owner.device || static_cast<std::uint32_t>(about.st_ino) != place.inode) return nullptr;
    if (!S_ISREG(about.st_mode) || about.st_size < 0 || size % 4096 != 0 || size < note_bytes) return nullptr;
    shared_memory memory(file.get(), size);
    std::size_t const length = size - note_bytes;
    buffer_note const& note = note_at(memory, length);
    if (!owner.token || note.owner != owner.token || note.buffer != place.buffer || note.bytes != length) return nullptr;
    if (place.offset > length || bytes > length - place.offset) return nullptr;
    memory.touch();
    last_ = mapped_.size();
    grown_ = true;
    mapped_.push_back({place.buffer, ++uses_, length, std::move(memory)});
    return mapped_.back().memory.data() + place.offset;
}

void mapped_buffers::tidy() noexcept {
    if (!grown_) return;
    grown_ = false;
    last_ = 0;
    std::erase_if(mapped_, [](entry const& each) {
        return std::atomic_ref(note_at(each.memory, each.bytes).freed).load(std::memory_order_acquire) != 0;
    });
    while (mapped_.size() > most)
        mapped_.erase(std::min_element(mapped_.begin(), mapped_.end(), [](auto& a, auto& b) { return a.used < b.used; }));
}

}  // namespace muster::shm
