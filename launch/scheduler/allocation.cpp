#include "launch/scheduler/allocation.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>

#include "base/text.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

std::string_view to_string(scheduler_kind kind) noexcept {
    switch (kind) {
        case scheduler_kind::slurm: return "slurm";
        case scheduler_kind::pbs: return "pbs";
        case scheduler_kind::cobalt: return "cobalt";
        case scheduler_kind::lsf: return "lsf";
        case scheduler_kind::flux: return "flux";
        case scheduler_kind::hostfile: return "hostfile";
        case scheduler_kind::local: return "local";
    }
    return "unknown";
}

std::vector<int> all_nodes(allocation const& given) {
    std::vector<int> nodes(given.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
}

std::string list_nodes(allocation const& given) {
    std::vector<std::string> names;
    for (auto const& n : given.nodes) names.push_back(n.name);
    auto list = compress_hosts(names);
    return list.size() > 60 ? list.substr(0, 57) + "..." : list;
}

std::string describe(allocation const& given) {
    std::int64_t gpus = 0;
    std::int64_t slots = 0;
    bool known = true;
    for (auto const& n : given.nodes) {
        gpus += n.gpus.value_or(0);
        slots += n.slots;
        known = known && n.gpus.has_value();
    }
    std::string const who = given.job_id.empty() ? fmt::format("({})", to_string(given.scheduler))
                                                 : fmt::format("job {} ({})", given.job_id, to_string(given.scheduler));
    std::string const what = known      ? (gpus > 0 ? counted(gpus, "GPU") : "no GPU")
                             : gpus > 0 ? fmt::format("{} known", counted(gpus, "GPU"))
                                        : "number of GPUs unknown";
    return fmt::format("{}: {}, {}, {}", who, counted(static_cast<std::int64_t>(given.nodes.size()), "node"), what,
                       counted(slots, "slot"));
}

std::string explain_unknown_gpus(allocation const& given) {
    std::vector<std::string> silent;
    for (auto const& n : given.nodes)
        if (!n.gpus) silent.push_back(n.name);
    if (silent.empty()) return {};
    auto const others = silent.size() - 1;
    bool const is_listed = given.scheduler == scheduler_kind::hostfile;
    auto const text = fmt::format("{} does not say how many GPUs {}{} {}",
                                  is_listed ? "the list of hosts" : to_string(given.scheduler), silent.front(),
                                  others == 0   ? ""
                                  : others == 1 ? " and 1 other node"
                                                : fmt::format(" and {} other nodes", others),
                                  others == 0 ? "has" : "have");
    if (silent.size() < given.nodes.size())
        return fmt::format("{}, as it does of the others, so ranks cannot be counted: give --slots-per-node N", text);
    return fmt::format(
        "{}: muster run starts one rank for each slot, and each node finds its own GPUs then; for another number of ranks give "
        "-n or "
        "--ranks-per-node, {}",
        text, is_listed ? "or gpus=N for every host of a --hostfile" : "or --site with a site file that says it ([node] gpus)");
}

allocation local_allocation(std::string const& host, int cores, int gpus) {
    return {scheduler_kind::local, "", {{host, "127.0.0.1", gpus > 0 ? gpus : cores, gpus, cores}}, std::nullopt, false};
}

}  // namespace muster
