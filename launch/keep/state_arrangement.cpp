#include "launch/keep/state_arrangement.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace muster {

namespace {

struct place {
    std::size_t node;
    wire::kept_copy what;
};

/// Where it is already, or the nearest: among the neighbours' copies there, else anywhere.
place const* best_of(std::vector<place> const& places, std::uint64_t step, std::size_t node) {
    place const* best = nullptr;
    auto const cost = [&](place const& one) { return one.node == node ? (one.what.of_neighbour ? 1 : 0) : 2; };
    for (auto const& one : places)
        if (one.what.step == step && (best == nullptr || cost(one) < cost(*best))) best = &one;
    return best;
}

}  // namespace

state_arrangement arrange_states(std::vector<std::vector<wire::kept_copy>> const& there,
                                 std::vector<std::size_t> const& node_of) {
    std::vector<std::vector<place>> places(node_of.size());
    for (std::size_t node = 0; node < there.size(); ++node)
        for (auto const& one : there[node])
            if (one.part >= 0 && static_cast<std::size_t>(one.part) < places.size())
                places[static_cast<std::size_t>(one.part)].push_back({node, one});
    std::map<std::uint64_t, std::size_t> ranks_with;
    std::vector<std::uint64_t> newest(places.size());
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        std::set<std::uint64_t> steps;
        for (auto const& one : places[rank]) steps.insert(one.what.step);
        for (auto const step : steps) ++ranks_with[step];
        if (!steps.empty()) newest[rank] = *steps.rbegin();
    }
    state_arrangement made;
    for (auto const& [step, ranks] : ranks_with)
        if (ranks == places.size()) made.step = step;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        auto const step = made.step != 0 ? made.step : newest[rank];
        auto const* const best = best_of(places[rank], step, node_of[rank]);
        if (best == nullptr) {
            if (!ranks_with.empty()) made.without.push_back(static_cast<int>(rank));
        } else if (best->node != node_of[rank] || best->what.of_neighbour) {
            made.moves.push_back({best->node, node_of[rank], best->what});
        }
    }
    return made;
}

}  // namespace muster
