#include <algorithm>
#include <map>

#include "launch/hardware/pci.hpp"
#include "launch/placement/binding_steps.hpp"

namespace muster {

namespace {

/// How near a card is to a rank: below a common PCI switch, the lower the better, then on the same NUMA node, then below the same
/// root complex. 0: nothing is known that would make it near.
int nearness(nic const& card, binding const& rank) {
    constexpr int below_a_switch = 100, same_numa = 10;
    int const numa = rank.device ? rank.device->numa : rank.numa;
    int const steps = rank.device ? shared_steps(card.pci_path, rank.device->pci_path) : 0;
    if (steps > 1) return below_a_switch + steps;
    return (numa >= 0 && card.numa == numa ? same_numa : 0) + steps;
}

/// Cards made for what ranks send, if there are any: beside them a server has others to be managed by.
std::vector<nic const*> candidates(topology const& t) {
    bool const fabric = std::any_of(t.nics.begin(), t.nics.end(), [](nic const& n) { return n.fabric; });
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
    // Ranks with a card near them choose before those to whom all are alike. Among equals the one with the fewest ranks is taken,
    // but only among cards of a fabric: of others the first one is the node's own.
    for (bool const near : {true, false})
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            auto& rank = ranks[r];
            int best = 0;
            for (auto const* card : cards) best = std::max(best, nearness(*card, rank));
            if ((best > 0) != near) continue;
            // Only ranks with a GPU look at all others: there are few of these, and may be 100,000 of those without one.
            auto const same_gpu = !rank.device ? ranks.end() : std::find_if(ranks.begin(), ranks.end(), [&](binding const& other) {
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

}  // namespace muster
