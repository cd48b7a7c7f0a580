#include "comm/shm/shm_world.hpp"

#include <fmt/format.h>

#include <algorithm>

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
            // It will not come; but it is not to blame.
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
                                ? fmt::format("process {} has started {} collectives, this one is number {}", who.pid,
                                              where.sequence, sequence)
                                : fmt::format("process {} has started it but does not go on", who.pid)});
        }
    }
    // Who is missing may itself wait, in another operation, for a rank that cannot come.
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

}  // namespace muster::shm
