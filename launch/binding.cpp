#include "launch/binding.hpp"

#include <fmt/format.h>

#include <map>

#include "base/error.hpp"

namespace muster {

namespace {

using core_list = std::vector<core const*>;

core_list all_cores(topology const& t) {
    core_list list;
    for (auto const& c : t.cores) list.push_back(&c);
    return list;
}

core_list cores_of_numa(topology const& t, int numa) {
    core_list list;
    for (auto const& c : t.cores)
        if (c.numa == numa) list.push_back(&c);
    return list;
}

std::optional<gpu> gpu_of(topology const& t, request const& wanted, int local_rank, int local_size) {
    if (t.gpus.empty()) return std::nullopt;
    auto const gpus = static_cast<int>(t.gpus.size());
    if (wanted.slots_per_node) return t.gpus[static_cast<std::size_t>(local_rank % gpus)];
    if (local_size > gpus * wanted.ranks_per_gpu)
        throw error(
            errc::placement,
            fmt::format("cannot bind {} ranks on {}: it has {} GPUs for {} rank(s) each; use -n {}, or --ranks-per-gpu {}",
                        local_size, t.host, gpus, wanted.ranks_per_gpu, gpus * wanted.ranks_per_gpu,
                        (local_size + gpus - 1) / gpus));
    return t.gpus[static_cast<std::size_t>(local_rank / wanted.ranks_per_gpu)];
}

/// Ranks that draw from the same cores, and the cores.
struct pool {
    core_list cores;
    std::vector<int> ranks;
    std::string near;  ///< why these cores: "NUMA 1 of its GPU 2 …"
};

/// One pool a NUMA node with GPUs if each such node has a core for each of its ranks, else one pool of everything.
std::vector<pool> make_pools(topology const& t, std::vector<binding> const& ranks) {
    std::map<int, pool> by_numa;
    bool separate = !t.gpus.empty();
    for (std::size_t r = 0; r < ranks.size() && separate; ++r) {
        int const numa = ranks[r].device->numa;
        auto& p = by_numa[numa];
        if (p.ranks.empty()) p.cores = cores_of_numa(t, numa);
        p.near = fmt::format("of NUMA {}, next to the GPU", numa);
        p.ranks.push_back(static_cast<int>(r));
        separate = numa >= 0 && p.ranks.size() <= p.cores.size();
    }
    if (separate) {
        std::vector<pool> pools;
        for (auto& [numa, p] : by_numa) pools.push_back(std::move(p));
        return pools;
    }
    pool everything{
        all_cores(t), {}, t.gpus.empty() ? "of the node" : "of the node (GPU locality unknown or too few cores there)"};
    for (std::size_t r = 0; r < ranks.size(); ++r) everything.ranks.push_back(static_cast<int>(r));
    return {everything};
}

void take(binding& b, core_list const& cores, std::size_t first, std::size_t count) {
    b.numa = cores[first]->numa;
    for (std::size_t i = first; i < first + count; ++i) {
        b.cores.add(cores[i]->cpus);
        if (cores[i]->numa != b.numa) b.numa = -1;
    }
}

std::string cores_text(std::size_t count) {
    return fmt::format("{} core{}", count, count == 1 ? "" : "s");
}

void bind_pool(topology const& t, request const& wanted, pool const& p, std::vector<binding>& ranks) {
    std::size_t const cores = p.cores.size();
    std::size_t const sharers = p.ranks.size();
    bool const enough = sharers <= cores;
    std::size_t width = wanted.bind_to == bind_policy::core || !enough ? 1 : cores / sharers;
    if (wanted.cpus_per_rank) {
        width = static_cast<std::size_t>(*wanted.cpus_per_rank);
        if (width * sharers > cores)
            throw error(
                errc::placement,
                fmt::format(
                    "cannot bind {} ranks on {} to {} cores each: there are {} cores {}; use --cpus-per-rank {}, fewer ranks, "
                    "or --bind-to none",
                    sharers, t.host, width, cores, p.near, std::max<std::size_t>(1, cores / sharers)));
    }
    for (std::size_t i = 0; i < sharers; ++i) {
        auto& b = ranks[static_cast<std::size_t>(p.ranks[i])];
        // Where ranks share cores they go round, so that those started one after the other do not queue for the same core.
        std::size_t const first = enough ? i * cores / sharers : i % cores;
        take(b, p.cores, first, width);
        b.why = enough ? fmt::format("{} {}", cores_text(width), p.near)
                       : fmt::format("shares a core: {} ranks on {} {}", sharers, cores_text(cores), p.near);
        if (wanted.bind_to == bind_policy::numa && b.numa >= 0) {
            auto const whole = cores_of_numa(t, b.numa);
            take(b, whole, 0, whole.size());
            b.why = fmt::format("the {} of NUMA {} (--bind-to numa)", cores_text(whole.size()), b.numa);
        }
    }
}

void choose_nic(topology const& t, binding& b) {
    for (auto const& n : t.nics)
        if (n.numa >= 0 && n.numa == (b.device ? b.device->numa : b.numa)) {
            b.nic = n.name;
            return;
        }
    if (!t.nics.empty()) b.nic = t.nics.front().name;
}

}  // namespace

std::string_view to_string(bind_policy policy) noexcept {
    switch (policy) {
        case bind_policy::share: return "share";
        case bind_policy::core: return "core";
        case bind_policy::numa: return "numa";
        case bind_policy::none: return "none";
    }
    return "unknown";
}

bind_policy parse_bind_policy(std::string_view word) {
    for (auto const policy : {bind_policy::share, bind_policy::core, bind_policy::numa, bind_policy::none})
        if (word == to_string(policy)) return policy;
    throw error(errc::usage, fmt::format("--bind-to {} is unknown; use share, core, numa or none", word));
}

std::vector<binding> bind_ranks(topology const& machine, request const& wanted, int local_size) {
    expect(!machine.cores.empty(), "a machine with cores");
    std::vector<binding> ranks(static_cast<std::size_t>(local_size));
    for (int r = 0; r < local_size; ++r) ranks[static_cast<std::size_t>(r)].device = gpu_of(machine, wanted, r, local_size);
    if (wanted.bind_to == bind_policy::none) {
        for (auto& b : ranks) b.why = "not bound (--bind-to none)";
    } else {
        for (auto const& p : make_pools(machine, ranks)) bind_pool(machine, wanted, p, ranks);
    }
    for (auto& b : ranks) choose_nic(machine, b);
    return ranks;
}

}  // namespace muster
