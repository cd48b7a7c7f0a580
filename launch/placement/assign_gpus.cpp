#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/hardware/pci.hpp"
#include "launch/placement/binding_steps.hpp"

namespace muster {

namespace {

/// Returns how near a card is to a rank: a common PCI switch counts most (the lower the better), then the same NUMA node, then
/// the same root complex. 0: nothing is known that would make it near.
int nearness(nic const& card, binding const& rank) {
    constexpr int below_a_switch = 100, same_numa = 10;
    int const numa = rank.device ? rank.device->numa : rank.numa;
    int const steps = rank.device ? shared_steps(card.pci_path, rank.device->pci_path) : 0;
    if (steps > 1) return below_a_switch + steps;
    return (numa >= 0 && card.numa == numa ? same_numa : 0) + steps;
}

/// Returns the cards made for the ranks' messages, if there are any: a server has other cards for its management.
std::vector<nic const*> candidates(topology const& t) {
    bool const fabric = std::ranges::any_of(t.nics, [](nic const& n) { return n.fabric; });
    std::vector<nic const*> cards;
    for (auto const& n : t.nics)
        if (n.fabric == fabric) cards.push_back(&n);
    return cards;
}

}  // namespace

void assign_nics(topology const& t, std::vector<binding>& ranks) {
    auto const cards = candidates(t);
    if (cards.empty()) return;
    std::map<std::string, int> uses;
    // Ranks with a card near them choose before those without one. Among equals the card with the fewest ranks is chosen, but
    // only among cards of a fabric: of other cards the first one is the node's main one.
    for (bool const near : {true, false})
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            auto& rank = ranks[r];
            int best = 0;
            for (auto const* card : cards) best = std::max(best, nearness(*card, rank));
            if ((best > 0) != near) continue;
            // Ranks without a GPU skip this comparison with all others: there may be 100,000 of them, but few with a GPU.
            auto const same_gpu = !rank.device ? ranks.end() : std::ranges::find_if(ranks, [&](binding const& other) {
                return other.nic && other.device == rank.device;
            });
            if (same_gpu != ranks.end()) {
                rank.nic = same_gpu->nic;
                continue;
            }
            nic const* chosen = nullptr;
            for (auto const* card : cards)
                if (nearness(*card, rank) == best &&
                    (chosen == nullptr || (card->fabric && uses[card->name] < uses[chosen->name])))
                    chosen = card;
            rank.nic = chosen->name;
            ++uses[chosen->name];
        }
}

namespace {

std::string note_of(topology const& t) {
    return t.gpu_note.empty() ? "" : fmt::format(" ({})", t.gpu_note);
}

void check_enough(topology const& t, placement_request const& wanted, int local_size) {
    auto const gpus = static_cast<int>(t.gpus.size());
    if (local_size <= gpus * wanted.ranks_per_gpu) return;
    throw_error(errc::placement,
                "cannot bind {} ranks on {}: it has {} GPUs for {} rank(s) each{}; use -n {}, or --ranks-per-gpu {}", local_size,
                t.host, gpus, wanted.ranks_per_gpu, note_of(t), gpus * wanted.ranks_per_gpu, (local_size + gpus - 1) / gpus);
}

/// Returns the GPU that a map means by `number`: its index, or its place in the list if indices are those of MIG slices' GPUs.
gpu const* find_mapped(topology const& t, int number) {
    bool const slices = std::ranges::any_of(t.gpus, [](gpu const& g) { return g.mig.has_value(); });
    for (std::size_t i = 0; i < t.gpus.size(); ++i)
        if ((slices ? static_cast<int>(i) : t.gpus[i].index) == number) return &t.gpus[i];
    return nullptr;
}

void assign_by_map(topology const& t, placement_request const& wanted, std::vector<binding>& ranks) {
    if (ranks.size() > wanted.gpu_map.size())
        throw_error(errc::placement, "cannot bind {} ranks on {}: the GPU map has {} entries; give one for each rank",
                    ranks.size(), t.host, wanted.gpu_map.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto const* const found = find_mapped(t, wanted.gpu_map[r]);
        if (found == nullptr)
            throw_error(errc::placement,
                        "cannot bind local rank {} on {} to GPU {}: there are {} GPUs here{}; correct the GPU map", r, t.host,
                        wanted.gpu_map[r], t.gpus.size(), note_of(t));
        auto const before = std::count_if(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(r),
                                          [&](binding const& b) { return b.device == *found; });
        if (before >= wanted.ranks_per_gpu && !wanted.slots_per_node)
            throw_error(errc::placement,
                        "cannot bind local rank {} on {}: the GPU map gives GPU {} to more than {} rank(s); correct the map, or "
                        "give --ranks-per-gpu {}",
                        r, t.host, wanted.gpu_map[r], wanted.ranks_per_gpu, before + 1);
        ranks[r].device = *found;
    }
}

}  // namespace

void assign_gpus(topology const& t, placement_request const& wanted, std::vector<binding>& ranks) {
    if (t.gpus.empty()) {
        if (!wanted.gpu_map.empty())
            throw_error(errc::placement, "there is a GPU map, but {} has no GPU{}; leave the map out", t.host, note_of(t));
        return;
    }
    auto const gpus = t.gpus.size();
    if (!wanted.gpu_map.empty()) {
        assign_by_map(t, wanted, ranks);
    } else {
        if (!wanted.slots_per_node) check_enough(t, wanted, static_cast<int>(ranks.size()));
        for (std::size_t r = 0; r < ranks.size(); ++r)
            ranks[r].device =
                wanted.slots_per_node ? t.gpus[r % gpus] : t.gpus[r / static_cast<std::size_t>(wanted.ranks_per_gpu)];
    }
}

void assign_visible(topology const& t, placement_request const& wanted, std::vector<binding>& ranks) {
    for (auto& rank : ranks) {
        if (!rank.device) continue;
        auto const& own = *rank.device;
        auto const others = std::ranges::count_if(ranks, [&](binding const& b) { return b.device == own; }) - 1;
        if (others > 0)
            explain(rank, fmt::format("shares its GPU with {} ({})", counted(others, "other rank"),
                                      wanted.slots_per_node ? fmt::format("--slots-per-node {}", *wanted.slots_per_node)
                                                            : fmt::format("--ranks-per-gpu {}", wanted.ranks_per_gpu)));
        if (!wanted.gpu_map.empty()) explain(rank, "GPU by the map");
        if (own.mig || wanted.gpus_seen == gpu_visibility::own) {
            rank.visible_devices = visible_name(own);
            if (own.mig) explain(rank, "a process sees one MIG slice only: its own");
            continue;
        }
        std::string visible;
        int position = 0, count = 0;
        if (wanted.gpus_seen == gpu_visibility::own_first) {
            visible = visible_name(own);
            ++count;
        }
        for (auto const& g : t.gpus) {
            if (g.mig || (wanted.gpus_seen == gpu_visibility::own_first && g == own)) continue;
            if (g == own) position = count;
            visible += (count++ == 0 ? "" : ",") + visible_name(g);
        }
        rank.device_index = position;
        // A GPU that only the scheduler knows keeps the scheduler's variable.
        if (own.known_to_driver || wanted.lists_gpus || wanted.gpus_seen == gpu_visibility::own_first)
            rank.visible_devices = visible;
    }
}

}  // namespace muster
