#include "comm/hierarchical/node_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster {

namespace {

using nodes = std::map<int, std::vector<std::pair<int, int>>>;  // node rank -> local rank and rank, in that order

std::string refusal_of(nodes const& by_node) {
    if (by_node.size() == 1) return "all ranks are on one node";
    auto const& [first, members] = *by_node.begin();
    for (auto const& [node, others] : by_node) {
        if (others.size() != members.size())
            return fmt::format("node {} has {} ranks and node {} has {}; steps need the same number on each", first,
                               members.size(), node, others.size());
        for (std::size_t i = 1; i < others.size(); ++i)
            if (others[i].first == others[i - 1].first)
                return fmt::format("ranks {} and {} both call themselves local rank {} of node {}", others[i - 1].second,
                                   others[i].second, others[i].first, node);
    }
    return members.size() == 1 ? "every node has one rank" : "";
}

}  // namespace

node_groups group_by_node(std::span<node_place const> places, int rank) {
    nodes by_node;
    for (std::size_t i = 0; i < places.size(); ++i)
        by_node[places[i].node_rank].emplace_back(places[i].local_rank, static_cast<int>(i));
    for (auto& [node, members] : by_node) std::sort(members.begin(), members.end());
    node_groups result;
    result.refusal = refusal_of(by_node);
    if (!result.refusal.empty()) return result;
    int const own_node = places[static_cast<std::size_t>(rank)].node_rank;
    for (auto const& [local_rank, member] : by_node[own_node]) {
        if (member == rank) result.local_place = static_cast<int>(result.local.size());
        result.local.push_back(member);
    }
    for (auto const& [node, members] : by_node) {
        if (node == own_node) result.node_place = static_cast<int>(result.across.size());
        result.across.push_back(members[static_cast<std::size_t>(result.local_place)].second);
    }
    return result;
}

}  // namespace muster
