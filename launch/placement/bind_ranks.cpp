#include "launch/placement/bind_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/placement/binding_steps.hpp"
#include "launch/placement/this_node.hpp"

namespace muster {

void explain(binding& rank, std::string_view text) {
    if (text.empty()) return;
    if (!rank.why.empty()) rank.why += "; ";
    rank.why += text;
}

namespace {

/// Does not bind ranks: other processes on the machine may have the same quota, and would be bound to the same cores.
void share_time(topology const& machine, std::vector<binding>& ranks) {
    int const each = std::max(1, *machine.cpu_quota / static_cast<int>(std::max<std::size_t>(1, ranks.size())));
    for (auto& rank : ranks) {
        rank.threads = each;
        explain(rank, fmt::format("not bound: a quota allows {} of {} CPUs", *machine.cpu_quota, machine.allowed().cpus.size()));
    }
}

}  // namespace

std::vector<binding> bind_ranks(topology const& machine, placement_request const& wanted, int local_size) {
    expect(!machine.cores.empty(), "a machine with cores");
    std::vector<binding> ranks(static_cast<std::size_t>(local_size));
    if (is_gpu_share_unclear(machine, wanted)) {
        topology without_gpus = machine;
        without_gpus.gpus.clear();
        auto others = wanted;
        others.share.gpus.reset();
        ranks = bind_ranks(without_gpus, others, local_size);
        for (auto& rank : ranks) explain(rank, "no GPU assigned: the job has some of them, and nothing says which");
        return ranks;
    }
    auto known = wanted;
    bool const by_time = machine.cpu_quota && wanted.bind_to == bind_policy::share && wanted.cpu_map.empty();
    if (is_core_share_unclear(machine, wanted) || by_time) known.bind_to = bind_policy::none;
    assign_gpus(machine, known, ranks);
    if (by_time)
        share_time(machine, ranks);
    else
        assign_cores(machine, known, ranks);
    assign_visible(machine, known, ranks);
    assign_nics(machine, ranks);
    return ranks;
}

std::vector<std::string> binding_notes(topology const& machine, placement_request const& wanted,
                                       std::vector<binding> const& ranks) {
    std::vector<std::string> notes;
    std::size_t const gpus = machine.gpus.size();
    if (gpus > 0 && wanted.slots_per_node && ranks.size() > gpus)
        notes.push_back(fmt::format("{}: {} share {} (--slots-per-node {}), so they share its memory and time too", machine.host,
                                    counted(ranks.size(), "rank"), counted(gpus, "GPU"), *wanted.slots_per_node));
    if (!wanted.gpu_cpus.empty() && gpus > 0 && static_cast<std::size_t>(machine.gpus_in_node) != wanted.gpu_cpus.size())
        notes.push_back(fmt::format("{}: {} here, but the site's map is of {}: the machine's own locality is used", machine.host,
                                    counted(machine.gpus_in_node, "GPU"), wanted.gpu_cpus.size()));
    return notes;
}

local_placement place_here(topology machine, allocation given, mapping map, placement_request const& wanted) {
    local_placement where{std::move(machine), std::move(given), std::move(map), {}};
    where.bindings = bind_ranks(where.machine, wanted, where.map.world_size());
    return where;
}

}  // namespace muster
