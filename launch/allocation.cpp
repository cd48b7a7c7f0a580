#include "launch/allocation.hpp"

#include <fmt/format.h>

#include <fstream>
#include <set>

#include "base/text.hpp"

namespace muster {

namespace {

std::size_t distinct_hosts(std::string const& path) {
    std::ifstream file(path);
    std::set<std::string> hosts;
    for (std::string line; std::getline(file, line);)
        if (auto const host = trim(line); !host.empty()) hosts.emplace(host);
    return hosts.size();
}

}  // namespace

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

allocation local_allocation(std::string const& host, int cores, int gpus) {
    return {scheduler_kind::local, "", {{host, "127.0.0.1", gpus > 0 ? gpus : cores, gpus}}, std::nullopt, false};
}

std::optional<std::string> several_nodes(environment const& variables) {
    if (auto const nodes = variables.get("SLURM_JOB_NUM_NODES"))
        if (auto const count = parse_integer(*nodes); count && *count > 1)
            return fmt::format("Slurm job {} has {} nodes ({})", variables.get_or("SLURM_JOB_ID", "?"), *nodes,
                               variables.get_or("SLURM_JOB_NODELIST", "?"));
    for (auto const* name : {"PBS_NODEFILE", "COBALT_NODEFILE"})
        if (auto const path = variables.get(name))
            if (auto const hosts = distinct_hosts(*path); hosts > 1)
                return fmt::format("{}={} names {} hosts", name, *path, hosts);
    return std::nullopt;
}

}  // namespace muster
