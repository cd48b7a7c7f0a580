#include "launch/mapping.hpp"

#include <fmt/format.h>

#include <numeric>

#include "base/error.hpp"

namespace muster {

namespace {

bool has_gpus(allocation const& a) {
    for (auto const& n : a.nodes)
        if (n.gpus.value_or(0) > 0) return true;
    return false;
}

std::string plural(int count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

int capacity_of(node const& n, bool gpus, request const& wanted) {
    if (wanted.slots_per_node) return *wanted.slots_per_node;
    return gpus ? n.gpus.value_or(0) * wanted.ranks_per_gpu : n.slots;
}

std::string where(allocation const& a) {
    if (a.scheduler == scheduler_kind::local) return fmt::format("node {}", a.nodes.front().name);
    return fmt::format("job {} ({})", a.job_id, to_string(a.scheduler));
}

/// "8 GPUs on 2 nodes" or "2 slots (2 cores, no GPU)", for errors.
std::string inventory(allocation const& a, bool gpus, request const& wanted, int capacity) {
    std::string const nodes = a.nodes.size() == 1 ? "" : fmt::format(" on {} nodes", a.nodes.size());
    if (wanted.slots_per_node) return plural(capacity, "slot") + nodes + " (--slots-per-node)";
    if (gpus) return plural(capacity / wanted.ranks_per_gpu, "GPU") + nodes;
    return plural(capacity, "slot") + nodes + " (its cores; no GPU)";
}

void check_positive(std::optional<int> value, std::string_view option) {
    if (value && *value < 1) throw error(errc::usage, fmt::format("{} must be at least 1, not {}", option, *value));
}

}  // namespace

int mapping::world_size() const noexcept {
    return std::accumulate(ranks_per_node.begin(), ranks_per_node.end(), 0);
}

int mapping::rank_of(int node, int local_rank) const {
    expect(node >= 0 && static_cast<std::size_t>(node) < ranks_per_node.size(), "a node of the mapping");
    expect(local_rank >= 0 && local_rank < ranks_per_node[node], "a local rank of that node");
    return std::accumulate(ranks_per_node.begin(), ranks_per_node.begin() + node, local_rank);
}

mapping map_ranks(allocation const& given, request const& wanted) {
    check_positive(wanted.ranks, "-n");
    check_positive(wanted.slots_per_node, "--slots-per-node");
    check_positive(wanted.ranks_per_gpu, "--ranks-per-gpu");
    check_positive(wanted.cpus_per_rank, "--cpus-per-rank");
    expect(!given.nodes.empty(), "an allocation with nodes");
    bool const gpus = has_gpus(given);
    std::vector<int> capacities;
    for (auto const& n : given.nodes) capacities.push_back(capacity_of(n, gpus, wanted));
    int const capacity = std::accumulate(capacities.begin(), capacities.end(), 0);
    int const ranks = wanted.ranks.value_or(capacity);
    if (ranks < 1)
        throw error(errc::placement,
                    fmt::format("cannot map any rank: {} has no GPU and no slot; give --slots-per-node N", where(given)));
    mapping m;
    if (ranks > capacity) {
        bool const may_oversubscribe = given.scheduler == scheduler_kind::local && !gpus && !wanted.slots_per_node;
        if (!may_oversubscribe)
            throw error(
                errc::placement,
                fmt::format("cannot map {} ranks: {} has {}; use -n {}, or {} {}", ranks, where(given),
                            inventory(given, gpus, wanted, capacity), capacity,
                            gpus && !wanted.slots_per_node ? "--ranks-per-gpu" : "--slots-per-node",
                            gpus && !wanted.slots_per_node ? (ranks * wanted.ranks_per_gpu + capacity - 1) / capacity : ranks));
        capacities.assign(1, ranks);
    }
    int left = ranks;
    for (int const c : capacities) {
        m.ranks_per_node.push_back(std::min(c, left));
        left -= m.ranks_per_node.back();
    }
    if (given.scheduler == scheduler_kind::local && !gpus && ranks > given.nodes.front().slots)
        m.note = fmt::format("{} on {} of {} (no GPU): oversubscribed, so timings say little", plural(ranks, "rank"),
                             plural(given.nodes.front().slots, "core"), given.nodes.front().name);
    return m;
}

}  // namespace muster
