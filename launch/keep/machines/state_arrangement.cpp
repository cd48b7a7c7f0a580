#include "launch/keep/machines/state_arrangement.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>

#include "launch/keep/machines/keeping_guards.hpp"

namespace muster {

namespace {

struct place {
    std::size_t node;
    wire::kept_copy what;
};

/// A commit of all ranks of a generation.
struct commit {
    std::uint64_t generation, step;
    int world_size;
    auto operator<=>(commit const&) const = default;
};

using places_of_ranks = std::map<int, std::vector<place>>;

/// Returns where it is already, or the nearest place: among the neighbours' copies there, else anywhere.
place const& best_of(std::vector<place> const& places, std::size_t node) {
    auto const cost = [&](place const& one) { return one.node == node ? (one.what.of_neighbour ? 1 : 0) : 2; };
    return *std::min_element(places.begin(), places.end(), [&](auto const& a, auto const& b) { return cost(a) < cost(b); });
}

bool is_on(std::vector<place> const& places, std::size_t node) {
    return std::any_of(places.begin(), places.end(), [&](place const& one) { return one.node == node; });
}

/// Returns the newest copies of each rank of a generation, and where they are.
places_of_ranks newest_of(std::map<commit, places_of_ranks> const& commits, std::uint64_t generation) {
    places_of_ranks newest;
    for (auto const& [what, ranks] : commits)
        if (what.generation == generation)
            for (auto const& [rank, places] : ranks) newest[rank] = places;
    return newest;
}

/// Returns which rank of the generation each one follows; -1: none. Its newest commit is not whole.
std::vector<int> share_out(places_of_ranks const& newest, int world_size, std::vector<std::size_t> const& node_of,
                           std::size_t nodes) {
    std::vector<int> after(node_of.size(), -1);
    auto const is_held = [&](std::size_t i) { return node_of[i] < nodes; };
    bool const as_before = static_cast<std::size_t>(world_size) == node_of.size();
    int best = newest.begin()->first;
    for (auto const& [rank, places] : newest) {
        if (places.front().what.step > newest.at(best).front().what.step) best = rank;
        if (auto const i = static_cast<std::size_t>(rank);
            i < after.size() && is_held(i) && (as_before || is_on(places, node_of[i])))
            after[i] = rank;
    }
    auto const is_taken = [&](int rank) { return std::find(after.begin(), after.end(), rank) != after.end(); };
    for (std::size_t i = 0; i < after.size() && !as_before; ++i)
        for (auto const& [rank, places] : newest)
            if (after[i] < 0 && !is_taken(rank) && is_on(places, node_of[i])) after[i] = rank;
    for (bool const free : {true, false})
        for (std::size_t i = 0; i < after.size(); ++i)
            if (is_held(i) && (after[i] < 0) == free && !is_taken(best)) after[i] = best;
    if (after.size() > 1 && !as_before && std::find(after.begin(), after.end(), -1) == after.end())
        (after.back() == best ? after.front() : after.back()) = -1;
    return after;
}

/// Notes where they stay: the nodes that have them, or else one that has a neighbour's copy, among its own then.
void leave_out(state_arrangement& made, std::vector<place> const& places) {
    auto const before = made.left_out.size();
    for (auto const& one : places)
        if (!one.what.of_neighbour) made.left_out.push_back({one.node, one.node, one.what});
    if (made.left_out.size() > before) return;
    auto const& one = places.front();
    made.left_out.push_back({one.node, one.node, one.what});
    made.moves.push_back(made.left_out.back());
}

}  // namespace

state_arrangement arrange_states(std::vector<std::vector<wire::kept_copy>> const& there,
                                 std::vector<std::size_t> const& node_of) {
    std::map<commit, places_of_ranks> commits;
    state_arrangement made{.free_part = static_cast<int>(node_of.size())};
    for (std::size_t node = 0; node < there.size(); ++node)
        for (auto const& one : there[node]) {
            if (one.rank >= 0 && one.rank < one.world_size &&
                keeping::holds(keeping::guard::neighbours_copies_count, true, !one.of_neighbour))
                commits[{one.generation, one.step, one.world_size}][one.rank].push_back({node, one});
            made.free_part = std::max(made.free_part, one.part + 1);
        }
    auto const is_whole = [](auto const& one) { return one.second.size() == static_cast<std::size_t>(one.first.world_size); };
    bool const all_held = std::all_of(node_of.begin(), node_of.end(), [&](std::size_t node) { return node < there.size(); });
    auto const whole = all_held ? std::find_if(commits.rbegin(), commits.rend(), is_whole) : commits.rend();
    places_of_ranks found;
    std::vector<int> after(node_of.size(), -1);
    if (!commits.empty()) {
        auto const& what = whole != commits.rend() ? whole->first : commits.rbegin()->first;
        made.generation = what.generation;
        made.world_size = what.world_size;
        if (whole != commits.rend()) {
            made.step = what.step;
            found = whole->second;
            for (std::size_t i = 0; i < after.size() && i < found.size(); ++i) after[i] = static_cast<int>(i);
            for (auto const& [rank, places] : found)
                if (rank >= static_cast<int>(after.size())) leave_out(made, places);
        } else {
            found = newest_of(commits, what.generation);
            after = share_out(found, what.world_size, node_of, there.size());
        }
        for (int rank = 0; rank < what.world_size; ++rank)
            if (!found.contains(rank)) made.without.push_back(rank);
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (after[i] < 0) {
            made.parts.push_back(commits.empty() ? static_cast<int>(i) : made.free_part++);
            continue;
        }
        auto const& best = best_of(found.at(after[i]), node_of[i]);
        made.parts.push_back(best.what.part);
        if (keeping::holds(keeping::guard::moves_what_is_elsewhere, best.node != node_of[i] || best.what.of_neighbour, false))
            made.moves.push_back({best.node, node_of[i], best.what});
    }
    return made;
}

std::vector<int> left_out_parts(state_arrangement const& made, std::size_t node) {
    std::vector<int> parts;
    for (auto const& one : made.left_out)
        if (one.to == node) parts.push_back(one.what.part);
    return parts;
}

state_arrangement arrange_alone(copy_shelf& store, std::size_t ranks) {
    auto made = arrange_states({list_copies(store, false)}, std::vector<std::size_t>(ranks, 0));
    auto staying = left_out_parts(made, 0);
    staying.insert(staying.end(), made.parts.begin(), made.parts.end());
    store.keep_only(made.generation, made.step);
    store.drop_others(staying);
    return made;
}

wire::kept_copy describe(copy_shelf::copy const& one, bool of_neighbour) {
    return {
        one.part, of_neighbour, one.step, one.by.generation, static_cast<int>(one.by.rank), static_cast<int>(one.by.world_size)};
}

std::vector<wire::kept_copy> list_copies(copy_shelf& store, bool of_neighbour) {
    std::vector<wire::kept_copy> all;
    for (auto const& one : store.sound_copies()) all.push_back(describe(one, of_neighbour));
    return all;
}

}  // namespace muster
