#include "launch/placement/placement_request.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/throw_error.hpp"
#include "launch/placement/this_node.hpp"

namespace muster {

std::string_view to_string(map_policy policy) noexcept {
    return policy == map_policy::slot ? "slot" : "node";
}

map_policy parse_map_policy(std::string_view word) {
    for (auto const policy : {map_policy::slot, map_policy::node})
        if (word == to_string(policy)) return policy;
    throw_error(errc::usage, "--map-by {} is unknown; use slot (fill each node) or node (one rank a node in turn)", word);
}

int mapping::world_size() const noexcept {
    return std::accumulate(ranks_per_node.begin(), ranks_per_node.end(), 0);
}

int mapping::nodes_used() const noexcept {
    return static_cast<int>(std::ranges::count_if(ranks_per_node, [](int n) { return n > 0; }));
}

std::vector<rank_place> mapping::places() const {
    std::vector<rank_place> all;
    all.reserve(static_cast<std::size_t>(world_size()));
    int const nodes = static_cast<int>(ranks_per_node.size());
    if (order == map_policy::slot) {
        for (int n = 0; n < nodes; ++n)
            for (int local = 0; local < ranks_per_node[static_cast<std::size_t>(n)]; ++local) all.push_back({n, local});
        return all;
    }
    int const rounds = ranks_per_node.empty() ? 0 : *std::ranges::max_element(ranks_per_node);
    for (int local = 0; local < rounds; ++local)
        for (int n = 0; n < nodes; ++n)
            if (local < ranks_per_node[static_cast<std::size_t>(n)]) all.push_back({n, local});
    return all;
}

rank_place mapping::place_of(int rank) const {
    auto const all = places();
    expect(rank >= 0 && static_cast<std::size_t>(rank) < all.size(), "a rank of the mapping");
    return all[static_cast<std::size_t>(rank)];
}

int mapping::rank_of(int node, int local_rank) const {
    expect(node >= 0 && static_cast<std::size_t>(node) < ranks_per_node.size(), "a node of the mapping");
    expect(local_rank >= 0 && local_rank < ranks_per_node[node], "a local rank of that node");
    if (order == map_policy::slot) return std::accumulate(ranks_per_node.begin(), ranks_per_node.begin() + node, local_rank);
    int rank = 0;
    for (int n = 0; n < static_cast<int>(ranks_per_node.size()); ++n)
        rank += std::min(ranks_per_node[static_cast<std::size_t>(n)], local_rank + (n < node ? 1 : 0));
    return rank;
}

namespace {

constexpr std::array<bind_policy, 6> bind_policies{bind_policy::share,  bind_policy::core, bind_policy::numa,
                                                   bind_policy::socket, bind_policy::gpu,  bind_policy::none};
constexpr std::array<gpu_visibility, 3> visibilities{gpu_visibility::all, gpu_visibility::own, gpu_visibility::own_first};

}  // namespace

std::string_view to_string(bind_policy policy) noexcept {
    switch (policy) {
        case bind_policy::share: return "share";
        case bind_policy::core: return "core";
        case bind_policy::numa: return "numa";
        case bind_policy::socket: return "socket";
        case bind_policy::gpu: return "gpu";
        case bind_policy::none: return "none";
    }
    return "unknown";
}

bind_policy parse_bind_policy(std::string_view word) {
    for (auto const policy : bind_policies)
        if (word == to_string(policy)) return policy;
    throw_error(errc::usage, "--bind-to {} is unknown; use share, core, numa, socket, gpu or none", word);
}

std::string_view to_string(gpu_visibility seen) noexcept {
    switch (seen) {
        case gpu_visibility::all: return "all";
        case gpu_visibility::own: return "own";
        case gpu_visibility::own_first: return "own-first";
    }
    return "unknown";
}

gpu_visibility parse_gpu_visibility(std::string_view word) {
    for (auto const seen : visibilities)
        if (word == to_string(seen)) return seen;
    throw_error(errc::usage, "--gpu-visibility {} is unknown; use all, own or own-first", word);
}

bool some_tell_gpus(allocation const& given) {
    auto const tells = [](node const& n) { return n.gpus.has_value(); };
    return std::ranges::any_of(given.nodes, tells) && !std::ranges::all_of(given.nodes, tells);
}

bool must_ask_nodes(allocation const& given, placement_request const& wanted) {
    if (wanted.slots_per_node) return false;
    if (some_tell_gpus(given)) return true;
    if (wanted.ranks || wanted.ranks_per_node) return false;
    if (std::ranges::all_of(given.nodes, [](node const& n) { return n.gpus || n.slots_named; })) return false;
    return given.nodes.size() > 1 || !is_this_host(given.nodes.front());
}

}  // namespace muster
