#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/placement/binding_steps.hpp"

namespace muster {

namespace {

/// Holds cores by their index in the list of usable ones, ascending.
using core_ids = std::vector<std::size_t>;

/// Holds the cores next to a rank's GPU; empty: not known, or none of them is usable.
struct vicinity {
    core_ids cores;
    std::string text;  ///< "of NUMA 1, next to the GPU"
};

/// Holds the input of every way of assigning cores to ranks.
struct binding_input {
    topology const& machine;
    placement_request const& wanted;
    std::vector<usable_core> cores;

    core_ids all() const {
        core_ids ids(cores.size());
        std::iota(ids.begin(), ids.end(), std::size_t{0});
        return ids;
    }
    template <typename Predicate>
    core_ids where(Predicate holds) const {
        core_ids ids;
        for (std::size_t i = 0; i < cores.size(); ++i)
            if (holds(cores[i])) ids.push_back(i);
        return ids;
    }
};

core_ids cores_of_numa(binding_input const& at, int numa) {
    return at.where([&](usable_core const& c) { return c.numa == numa; });
}

core_ids touching(binding_input const& at, cpuset const& cpus) {
    return at.where([&](usable_core const& c) { return !intersect(c.threads, cpus).empty(); });
}

/// Returns the NUMA node to which all of `ids` belong, or -1.
int common_numa(binding_input const& at, core_ids const& ids) {
    if (ids.empty()) return -1;
    int const numa = at.cores[ids.front()].numa;
    bool const same = std::ranges::all_of(ids, [&](std::size_t i) { return at.cores[i].numa == numa; });
    return same ? numa : -1;
}

bool site_map_fits(binding_input const& at) {
    return !at.wanted.gpu_cpus.empty() && static_cast<std::size_t>(at.machine.gpus_in_node) == at.wanted.gpu_cpus.size();
}

vicinity near_gpu(binding_input const& at, gpu const& g) {
    vicinity near;
    auto const index = static_cast<std::size_t>(g.index);
    if (site_map_fits(at) && index < at.wanted.gpu_cpus.size()) {
        near.cores = touching(at, cpuset::from_list(at.wanted.gpu_cpus[index], fmt::format("CPUs of GPU {}", g.index)));
        near.text = "next to the GPU, as the site says";
    } else if (!g.near.empty()) {
        near.cores = touching(at, g.near);
        near.text = "next to the GPU";
    } else if (g.numa >= 0) {
        near.cores = cores_of_numa(at, g.numa);
        near.text = "next to the GPU";
    }
    if (int const numa = common_numa(at, near.cores); numa >= 0) near.text = fmt::format("of NUMA {}, {}", numa, near.text);
    return near;
}

void assign(binding_input const& at, binding& rank, core_ids const& ids) {
    rank.cores = {};
    rank.numa = common_numa(at, ids);
    for (auto const i : ids) rank.cores.add(at.cores[i].cpus);
}

/// Ranks that share a set of cores.
struct pool {
    core_ids cores;
    std::vector<std::size_t> ranks;
    std::string text;
};

/// Distributes the pool's cores evenly, `width` to each rank.
void share_out(binding_input const& at, pool const& p, std::size_t width, std::vector<binding>& ranks) {
    for (std::size_t i = 0; i < p.ranks.size(); ++i) {
        auto const first = p.cores.begin() + static_cast<std::ptrdiff_t>(i * p.cores.size() / p.ranks.size());
        assign(at, ranks[p.ranks[i]], core_ids(first, first + static_cast<std::ptrdiff_t>(width)));
        explain(ranks[p.ranks[i]], fmt::format("{} {}", counted(width, "core"), p.text));
    }
}

/// There are more ranks than cores, and nobody has said how to share them, so the kernel moves the ranks to free cores. Ranks
/// that are bound to one core without knowing it spin against each other (Open MPI 4 over srun: most runs of 16 ranks on 2 cores
/// never got through MPI_Init).
void leave_unbound(binding_input const& at, std::vector<binding>& ranks) {
    for (auto& rank : ranks)
        explain(rank, fmt::format("not bound: {} ranks on {} of the node", ranks.size(), counted(at.cores.size(), "core")));
}

/// Deals cores in rounds if there are more ranks than cores, so that ranks started one after the other have different cores.
void deal_in_rounds(binding_input const& at, std::vector<binding>& ranks) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        assign(at, ranks[r], {r % at.cores.size()});
        explain(ranks[r],
                fmt::format("shares a core: {} ranks on {} of the node", ranks.size(), counted(at.cores.size(), "core")));
    }
}

/// Handles too few cores next to some GPUs for the ranks there: each rank gets nearby cores as far as they go, then other free
/// ones.
void share_scarce(binding_input const& at, std::vector<vicinity> const& near, std::size_t width, std::vector<binding>& ranks) {
    std::vector<core_ids> given(ranks.size());
    std::vector<bool> taken(at.cores.size(), false);
    std::map<core_ids, std::size_t> sharers;
    for (auto const& v : near) ++sharers[v.cores];
    auto const fill = [&](std::size_t r, core_ids const& from, std::size_t most) {
        for (auto const i : from) {
            if (given[r].size() >= most) return;
            if (taken[i]) continue;
            taken[i] = true;
            given[r].push_back(i);
        }
    };
    // This takes two rounds, so that each rank gets its part of its vicinity before any takes more, or cores of another vicinity.
    for (std::size_t r = 0; r < ranks.size(); ++r)
        fill(r, near[r].cores, std::min(width, std::max<std::size_t>(1, near[r].cores.size() / sharers[near[r].cores])));
    for (std::size_t r = 0; r < ranks.size(); ++r) fill(r, near[r].cores, width);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto const beside = given[r].size();
        fill(r, at.all(), width);
        std::sort(given[r].begin(), given[r].end());
        assign(at, ranks[r], given[r]);
        explain(ranks[r],
                near[r].text.empty() ? fmt::format("{} of the node (where the GPU is is not known)", counted(width, "core"))
                : beside == width    ? fmt::format("{} {}", counted(width, "core"), near[r].text)
                                     : fmt::format("{} of the node, {} of them next to the GPU: too few are there",
                                                   counted(width, "core"), beside == 0 ? "none" : fmt::format("{}", beside)));
    }
}

[[noreturn]] void refuse_width(binding_input const& at, std::size_t ranks, std::size_t width) {
    auto const cores = at.cores.size();
    throw_error(errc::placement,
                "cannot bind {} ranks on {} to {} cores each: the node has {} cores; use --cpus-per-rank {}, fewer ranks, or "
                "--bind-to none",
                ranks, at.machine.host, width, cores, std::max<std::size_t>(1, cores / ranks));
}

/// Returns the pools of ranks with the same vicinity, if no core is in two of them and each has `least` cores for each of its
/// ranks.
std::optional<std::vector<pool>> separate_pools(binding_input const& at, std::vector<vicinity> const& near, std::size_t least) {
    std::map<core_ids, pool> pools;
    for (std::size_t r = 0; r < near.size(); ++r) {
        auto& p = pools[near[r].cores];
        p.cores = near[r].cores;
        p.text = near[r].text;
        p.ranks.push_back(r);
    }
    std::set<std::size_t> seen;
    std::vector<pool> list;
    for (auto& [cores, p] : pools) {
        // All ranks share all cores if there is no GPU, or no place of a GPU is known.
        if (cores.empty() && pools.size() == 1) {
            p.cores = at.all();
            p.text = at.machine.gpus.empty()     ? "of the node"
                     : near.front().text.empty() ? "of the node (where the GPUs are is not known)"
                                                 : "of the node (none of those next to the GPU may be used)";
        }
        if (p.cores.size() < least * p.ranks.size()) return std::nullopt;
        for (auto const i : p.cores)
            if (!seen.insert(i).second) return std::nullopt;
        list.push_back(std::move(p));
    }
    return list;
}

/// Assigns the same number of whole cores to each rank: bind_to share and core.
void bind_shares(binding_input const& at, std::vector<vicinity> const& near, std::vector<binding>& ranks) {
    auto const& wanted = at.wanted;
    std::size_t const least = static_cast<std::size_t>(wanted.cpus_per_rank.value_or(1));
    bool const fixed = wanted.cpus_per_rank || wanted.bind_to == bind_policy::core;
    if (auto const pools = separate_pools(at, near, least)) {
        for (auto const& p : *pools) share_out(at, p, fixed ? least : p.cores.size() / p.ranks.size(), ranks);
        return;
    }
    if (least * ranks.size() <= at.cores.size())
        share_scarce(at, near, fixed ? least : at.cores.size() / ranks.size(), ranks);
    else if (wanted.cpus_per_rank)
        refuse_width(at, ranks.size(), least);
    else if (wanted.bind_to == bind_policy::share)
        leave_unbound(at, ranks);
    else
        deal_in_rounds(at, ranks);
}

/// Assigns to each rank all that it is near to: bind_to numa, socket and gpu. Ranks may share it, since the user asked for it.
void bind_wholes(binding_input const& at, std::vector<vicinity> const& near, std::vector<binding>& ranks) {
    auto const policy = at.wanted.bind_to;
    if (policy == bind_policy::gpu && at.machine.gpus.empty())
        throw_error(errc::placement, "--bind-to gpu: {} has no GPU{}; use --bind-to share", at.machine.host,
                    at.machine.gpu_note.empty() ? "" : fmt::format(" ({})", at.machine.gpu_note));
    // A rank is where its share of the cores would begin.
    auto parts = ranks;
    bind_shares(at, near, parts);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (policy == bind_policy::gpu) {
            auto const& cores = near[r].cores.empty() ? at.all() : near[r].cores;
            assign(at, ranks[r], cores);
            explain(ranks[r], fmt::format("the {} {} (--bind-to gpu)", counted(cores.size(), "core"),
                                          near[r].cores.empty() ? "of the node: where the GPU is is not known" : near[r].text));
            continue;
        }
        int const first_cpu = parts[r].cores.cpus.front();
        auto const& base = *std::ranges::find_if(at.cores, [&](usable_core const& c) { return c.cpus.contains(first_cpu); });
        bool const numa = policy == bind_policy::numa;
        auto const cores = at.where([&](usable_core const& c) { return numa ? c.numa == base.numa : c.package == base.package; });
        assign(at, ranks[r], cores);
        explain(ranks[r], fmt::format("the {} of {} {} (--bind-to {})", counted(cores.size(), "core"), numa ? "NUMA" : "socket",
                                      numa ? base.numa : base.package, to_string(policy)));
    }
}

/// Assigns exactly what a map by local rank says, as far as this process may use it.
void bind_mapped(binding_input const& at, std::vector<binding>& ranks) {
    auto const& map = at.wanted.cpu_map;
    if (ranks.size() > map.size())
        throw_error(errc::placement, "cannot bind {} ranks on {}: the CPU map has {} entries; give one for each rank",
                    ranks.size(), at.machine.host, map.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto const asked = cpuset::from_list(map[r], fmt::format("CPU map, local rank {}", r));
        core_ids ids;
        std::size_t const most = at.wanted.bind_to == bind_policy::core ? 1 : asked.cpus.size();
        auto const width = static_cast<std::size_t>(at.wanted.cpus_per_rank.value_or(static_cast<int>(most)));
        for (auto const i : touching(at, asked))
            if (ids.size() < width) ids.push_back(i);
        if (ids.empty())
            throw_error(errc::placement,
                        "cannot bind local rank {} on {} to the CPUs {} of the map: none of them may be used; usable are {}", r,
                        at.machine.host, map[r], at.machine.allowed().to_list());
        if (at.wanted.cpus_per_rank && ids.size() < width)
            throw_error(errc::placement,
                        "cannot bind local rank {} on {} to {} cores: the map gives it {} ({}); use --cpus-per-rank {}", r,
                        at.machine.host, width, ids.size(), map[r], ids.size());
        assign(at, ranks[r], ids);
        if (at.wanted.smt) ranks[r].cores = intersect(ranks[r].cores, asked);
        explain(ranks[r],
                ranks[r].cores == asked ? "CPUs by the map" : fmt::format("CPUs by the map ({}), as far as usable", map[r]));
    }
}

}  // namespace

std::vector<usable_core> usable_cores(topology const& machine, placement_request const& wanted) {
    auto const reserved = cpuset::from_list(wanted.reserved_cpus, "reserved CPUs");
    std::vector<usable_core> usable;
    for (auto const& c : machine.cores) {
        if (!intersect(c.cpus, reserved).empty()) continue;
        usable.push_back({wanted.smt ? c.cpus : cpuset{{c.cpus.cpus.front()}}, c.cpus, c.numa, c.package});
    }
    if (usable.empty())
        throw_error(errc::placement, "no core of {} is left for ranks: its CPUs {} are all reserved ({})", machine.host,
                    machine.allowed().to_list(), wanted.reserved_cpus);
    return usable;
}

void assign_cores(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks) {
    if (ranks.empty()) return;
    if (wanted.bind_to == bind_policy::none) {
        for (auto& rank : ranks) explain(rank, "not bound (--bind-to none)");
        return;
    }
    binding_input const at{machine, wanted, usable_cores(machine, wanted)};
    if (!wanted.cpu_map.empty()) return bind_mapped(at, ranks);
    std::vector<vicinity> near;
    for (auto const& rank : ranks) near.push_back(rank.device ? near_gpu(at, *rank.device) : vicinity{});
    if (wanted.bind_to == bind_policy::share || wanted.bind_to == bind_policy::core) return bind_shares(at, near, ranks);
    if (wanted.cpus_per_rank)
        throw_error(errc::usage, "--cpus-per-rank {} and --bind-to {} contradict each other; leave one of them out",
                    *wanted.cpus_per_rank, to_string(wanted.bind_to));
    bind_wholes(at, near, ranks);
}

}  // namespace muster
