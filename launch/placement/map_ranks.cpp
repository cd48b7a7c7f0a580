#include "launch/placement/placement_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::int64_t most_ranks = 10'000'000;  // above any machine, so that a mistyped number does not use up the memory

/// Names what a rank needs one of.
enum class unit {
    gpu,      ///< nodes report their GPUs, and there are some
    slot,     ///< no node has a GPU
    unknown,  ///< only the nodes themselves can tell whether they have GPUs
    stated,   ///< --slots-per-node
};

std::string where(allocation const& a) {
    if (a.scheduler == scheduler_kind::local) return fmt::format("node {}", a.nodes.front().name);
    if (a.scheduler == scheduler_kind::hostfile) return "the list of hosts";
    auto const job = fmt::format("job {} ({})", a.job_id, to_string(a.scheduler));
    return a.narrowed_by.empty() ? job : fmt::format("what {} takes of {}, {},", a.narrowed_by, job, list_nodes(a));
}

/// The nodes that may get ranks, as indices, and how many each takes.
struct room {
    unit counted = unit::slot;
    std::vector<std::size_t> nodes;
    std::vector<std::int64_t> capacity;  ///< for nodes[i]

    std::int64_t total() const { return std::accumulate(capacity.begin(), capacity.end(), std::int64_t{0}); }
};

/// Returns how many GPUs all nodes have; nothing if no node says. Throws if some nodes say and others do not.
std::optional<std::int64_t> known_gpus(allocation const& a) {
    node const* tells = nullptr;
    node const* silent = nullptr;
    std::int64_t sum = 0;
    for (auto const& n : a.nodes) {
        (n.gpus ? tells : silent) = &n;
        sum += n.gpus.value_or(0);
    }
    if (tells == nullptr) return std::nullopt;
    if (silent != nullptr)
        throw_error(errc::placement,
                    "{} says that {} has {}, and nothing of {}: ranks cannot be counted; give --slots-per-node N, or gpus=N for "
                    "every host of a --hostfile",
                    where(a), tells->name, counted(*tells->gpus, "GPU"), silent->name);
    return sum;
}

unit unit_of(allocation const& a, placement_request const& wanted) {
    if (wanted.slots_per_node) return unit::stated;
    auto const gpus = known_gpus(a);
    return !gpus ? unit::unknown : *gpus > 0 ? unit::gpu : unit::slot;
}

std::int64_t capacity_of(node const& n, unit counted, placement_request const& wanted) {
    if (counted == unit::stated) return *wanted.slots_per_node;
    return counted == unit::gpu ? std::int64_t{n.gpus.value_or(0)} * wanted.ranks_per_gpu : n.slots;
}

/// Returns " (4 each)" if all are equal.
std::string each(std::vector<std::int64_t> const& capacity, std::int64_t divisor) {
    if (capacity.size() < 2 || std::ranges::adjacent_find(capacity, std::not_equal_to<>()) != capacity.end()) return "";
    return fmt::format(" ({} each)", capacity.front() / divisor);
}

/// Returns "8 GPUs on 2 nodes (4 each)" or "2 slots (its cores; no GPU)", for errors.
std::string inventory(allocation const& a, room const& r, placement_request const& wanted) {
    std::string const nodes = r.nodes.size() == 1 && a.nodes.size() == 1 ? "" : " on " + counted(r.nodes.size(), "node");
    std::int64_t const per_unit = r.counted == unit::gpu ? wanted.ranks_per_gpu : 1;
    std::string const count =
        counted(r.total() / per_unit, r.counted == unit::gpu ? "GPU" : "slot") + nodes + each(r.capacity, per_unit);
    if (r.counted == unit::stated) return count + " (--slots-per-node)";
    if (r.counted == unit::slot) return count + (a.scheduler == scheduler_kind::local ? " (its cores; no GPU)" : " (no GPU)");
    return count;
}

/// Returns the option with which a node with room for `there` ranks takes `needed`.
std::string remedy(room const& r, placement_request const& wanted, std::int64_t needed, std::int64_t there) {
    if (r.counted != unit::gpu) return fmt::format("--slots-per-node {}", needed);
    return fmt::format("--ranks-per-gpu {}", there == 0 ? needed : (needed * wanted.ranks_per_gpu + there - 1) / there);
}

void check_positive(std::optional<int> value, std::string_view option) {
    if (value && *value < 1) throw_error(errc::usage, "{} must be at least 1, not {}", option, *value);
}

void check(placement_request const& wanted) {
    check_positive(wanted.ranks, "-n");
    check_positive(wanted.nodes, "--nnodes");
    check_positive(wanted.ranks_per_node, "--ranks-per-node");
    check_positive(wanted.slots_per_node, "--slots-per-node");
    check_positive(wanted.ranks_per_gpu, "--ranks-per-gpu");
    check_positive(wanted.cpus_per_rank, "--cpus-per-rank");
    if (wanted.ranks && *wanted.ranks > most_ranks)
        throw_error(errc::usage, "-n {} is more than muster can place ({})", *wanted.ranks, most_ranks);
}

/// Returns the first `wanted.nodes` of those that can take a rank, or all of them.
room make_room(allocation const& given, placement_request const& wanted) {
    room r;
    r.counted = unit_of(given, wanted);
    for (std::size_t i = 0; i < given.nodes.size(); ++i) {
        auto const capacity = capacity_of(given.nodes[i], r.counted, wanted);
        if (capacity < 1) continue;
        if (wanted.nodes && r.nodes.size() == static_cast<std::size_t>(*wanted.nodes)) break;
        r.nodes.push_back(i);
        r.capacity.push_back(capacity);
    }
    if (r.nodes.empty())
        throw_error(errc::placement, "cannot map any rank: {} has no GPU and no slot; give --slots-per-node N", where(given));
    if (wanted.nodes && r.nodes.size() < static_cast<std::size_t>(*wanted.nodes))
        throw_error(
            errc::placement, "cannot use {} nodes: {} has {}{}; use --nnodes {}{}", *wanted.nodes, where(given), r.nodes.size(),
            r.nodes.size() < given.nodes.size() ? " with GPUs" : "", r.nodes.size(),
            given.scheduler != scheduler_kind::local
                ? ""
                : "; this shell is in no job: get nodes by muster submit, muster alloc or the scheduler, or name them by -H");
    return r;
}

/// Puts exactly this many on each used node; -n gives the number of nodes.
void map_by_node_count(allocation const& given, placement_request const& wanted, room& r) {
    int const each_node = *wanted.ranks_per_node;
    if (wanted.ranks) {
        if (*wanted.ranks % each_node != 0)
            throw_error(errc::usage, "-n {} is no multiple of --ranks-per-node {}; use -n {}, or leave one of them out",
                        *wanted.ranks, each_node, (*wanted.ranks / each_node + 1) * each_node);
        auto const nodes = static_cast<std::size_t>(*wanted.ranks / each_node);
        if (wanted.nodes && nodes != static_cast<std::size_t>(*wanted.nodes))
            throw_error(errc::usage, "-n {} is not --nnodes {} times --ranks-per-node {}; leave one of them out", *wanted.ranks,
                        *wanted.nodes, each_node);
        if (nodes > r.nodes.size())
            throw_error(errc::placement, "cannot map {} ranks with {} on each node: {} has {}; use -n {}", *wanted.ranks,
                        each_node, where(given), counted(r.nodes.size(), "node"),
                        r.nodes.size() * static_cast<std::size_t>(each_node));
        r.nodes.resize(nodes);
        r.capacity.resize(nodes);
    }
    for (std::size_t i = 0; i < r.nodes.size(); ++i) {
        auto const& n = given.nodes[r.nodes[i]];
        // If nothing was counted, the user decides, up to the node's hardware threads.
        auto const most =
            r.counted == unit::unknown ? std::max<std::int64_t>(n.cpus.value_or(each_node), r.capacity[i]) : r.capacity[i];
        if (each_node > most && !(given.scheduler == scheduler_kind::local && r.counted == unit::slot))
            throw_error(errc::placement, "cannot map {} ranks on {}: it has {}; use --ranks-per-node {}, or {}", each_node,
                        n.name, r.counted == unit::gpu ? counted(*n.gpus, "GPU") : counted(most, "slot"), most,
                        remedy(r, wanted, each_node, most));
        r.capacity[i] = each_node;
    }
}

/// If the GPUs are not known, -n may exceed the slots: the ranks are spread evenly, up to each node's hardware threads.
bool spread_unknown(allocation const& given, std::int64_t ranks, room& r) {
    bool const counted_by_user = std::ranges::any_of(r.nodes, [&](std::size_t n) { return given.nodes[n].slots_named; });
    if (r.counted != unit::unknown || counted_by_user) return false;
    auto const nodes = static_cast<std::int64_t>(r.nodes.size());
    auto const most = (ranks + nodes - 1) / nodes;
    for (std::size_t i = 0; i < r.nodes.size(); ++i)
        if (auto const cpus = given.nodes[r.nodes[i]].cpus; cpus && *cpus < most) return false;
    for (std::int64_t i = 0; i < nodes; ++i)
        r.capacity[static_cast<std::size_t>(i)] = ranks / nodes + (i < ranks % nodes ? 1 : 0);
    return true;
}

/// Makes room for `ranks`, or throws the error that says why not.
void make_it_fit(allocation const& given, placement_request const& wanted, std::int64_t ranks, room& r) {
    std::int64_t const capacity = r.total();
    if (ranks <= capacity) return;
    if (given.scheduler == scheduler_kind::local && r.counted == unit::slot) {
        r.capacity.assign(1, ranks);  // the user has this machine alone
        return;
    }
    if (spread_unknown(given, ranks, r)) return;
    auto const nodes = static_cast<std::int64_t>(r.nodes.size());
    auto const gpus = r.counted == unit::gpu ? capacity / wanted.ranks_per_gpu : 0;
    auto const way = !given.narrowed_by.empty() ? fmt::format("leave {} out", given.narrowed_by)
                     : r.counted == unit::gpu   ? fmt::format("--ranks-per-gpu {}", (ranks + gpus - 1) / gpus)
                                                : fmt::format("--slots-per-node {}", (ranks + nodes - 1) / nodes);
    throw_error(errc::placement, "cannot map {} ranks: {} has {}; use -n {}, or {}", ranks, where(given),
                inventory(given, r, wanted), capacity, way);
}

/// Deals ranks in rounds, one to each node that still has room. Linear except for a binary search.
void deal(std::int64_t ranks, std::vector<std::int64_t>& capacity) {
    auto const taken_by = [&](std::int64_t rounds) {
        std::int64_t sum = 0;
        for (auto const c : capacity) sum += std::min(c, rounds);
        return sum;
    };
    std::int64_t low = 0;  // all rounds up to this fit
    std::int64_t high = ranks + 1;
    while (high - low > 1) {
        auto const middle = low + (high - low) / 2;
        (taken_by(middle) <= ranks ? low : high) = middle;
    }
    std::int64_t left = ranks - taken_by(low);
    for (auto& c : capacity) {
        bool const one_more = c > low && left > 0;
        left -= one_more ? 1 : 0;
        c = std::min(c, low) + (one_more ? 1 : 0);
    }
}

/// Fills one node after the other.
void fill(std::int64_t ranks, std::vector<std::int64_t>& capacity) {
    for (auto& c : capacity) {
        c = std::min(c, ranks);
        ranks -= c;
    }
}

std::string note_of(allocation const& given, placement_request const& wanted, room const& r, std::int64_t ranks) {
    if (given.scheduler == scheduler_kind::local && r.counted == unit::slot && ranks > given.nodes.front().slots)
        return fmt::format("{} on {} of {} (no GPU): oversubscribed, so timings say little", counted(ranks, "rank"),
                           counted(given.nodes.front().slots, "core"), given.nodes.front().name);
    if (r.counted == unit::unknown && given.fixed && !wanted.ranks && !wanted.ranks_per_node)
        return fmt::format(
            "{} does not say how many GPUs its nodes have: one rank for each of its {}; give -n or --ranks-per-node "
            "for another number",
            where(given), counted(ranks, "slot"));
    return "";
}

}  // namespace

mapping map_ranks(allocation const& given, placement_request const& wanted) {
    check(wanted);
    expect(!given.nodes.empty(), "an allocation with nodes");
    room r = make_room(given, wanted);
    if (wanted.ranks_per_node) map_by_node_count(given, wanted, r);
    std::int64_t const ranks = wanted.ranks.value_or(0) > 0 ? *wanted.ranks : r.total();
    if (ranks > most_ranks)
        throw_error(errc::placement, "{} ranks are more than muster can place ({}); give -n", ranks, most_ranks);
    make_it_fit(given, wanted, ranks, r);
    if (wanted.nodes && ranks < *wanted.nodes)
        throw_error(errc::usage, "-n {} leaves some of --nnodes {} without a rank; use --nnodes {}", ranks, *wanted.nodes, ranks);
    mapping m;
    m.order = wanted.map_by;
    m.note = note_of(given, wanted, r, ranks);
    if (wanted.nodes || wanted.map_by == map_policy::node)
        deal(ranks, r.capacity);
    else
        fill(ranks, r.capacity);
    m.ranks_per_node.assign(given.nodes.size(), 0);
    for (std::size_t i = 0; i < r.nodes.size(); ++i) m.ranks_per_node[r.nodes[i]] = static_cast<int>(r.capacity[i]);
    bool const by_count = wanted.ranks && !wanted.nodes && !wanted.ranks_per_node;
    if (auto const used = static_cast<std::size_t>(m.nodes_used());
        m.note.empty() && given.fixed && by_count && static_cast<std::size_t>(ranks) > used && used < r.nodes.size())
        m.note = fmt::format("{} fit on {} of the {} nodes of {}, and the others have none; --map-by node spreads them",
                             counted(ranks, "rank"), used, r.nodes.size(), where(given));
    return m;
}

}  // namespace muster
