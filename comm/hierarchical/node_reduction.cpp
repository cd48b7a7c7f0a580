#include "comm/hierarchical/node_reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "comm/backend/late_ranks.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/tensor/reduction_kernels.hpp"

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

std::vector<node_place> gather_places(collective_backend& world, identity const& who, comm_options const& options) {
    node_place mine{who.node_rank, who.local_rank};
    std::vector<node_place> all(static_cast<std::size_t>(who.world_size));
    auto const bytes = [](node_place* of, std::size_t count) {
        return tensor_view{of, count * sizeof(node_place), dtype::u8, memory_kind::host};
    };
    run_now(world, {collective::kind::allgather, bytes(&mine, 1), bytes(all.data(), all.size())}, options,
            "telling each other the ranks' places");
    return all;
}

identity identity_on_node(identity const& who, node_groups const& groups, std::string_view purpose) {
    identity local = who;
    // Backends count the worlds of a name: the same ranks must have come by it in all of them.
    local.nspace = fmt::format("{}.{:x}.{}", who.nspace, static_cast<std::uint64_t>(fingerprint_of(groups.local)), purpose);
    local.rank = local.local_rank = groups.local_place;
    local.world_size = local.local_size = static_cast<int>(groups.local.size());
    local.node_rank = 0;
    local.node_count = 1;
    return local;
}

collective node_reduction::scatter() const {
    collective next{collective::kind::reducescatter, whole_.in, share(), step()};
    next.scale.before = whole_.scale.before;
    return next;
}

collective node_reduction::across(tensor_view const& share) const {
    return {collective::kind::allreduce, share, share, step()};
}

collective node_reduction::gather() const {
    collective next{collective::kind::allgather, share(), whole_.out};
    auto const size = static_cast<int>(groups_.local.size());
    for (int place = 0; place < size; ++place) next.receive_counts.push_back(range_of(place).count);
    return next;
}

void node_reduction::finish(tensor_view const& share) const noexcept {
    if (whole_.how == reduction::average && !divides_early())
        divide(share.type, share.data, share.count, static_cast<int>(groups_.local.size() * groups_.across.size()));
    if (whole_.scale.after != 1) multiply(share.type, share.data, share.data, share.count, whole_.scale.after);
}

}  // namespace muster
