#include "launch/engine/engine_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

namespace muster {

namespace {

template <typename Value>
std::optional<int> common_value(engine_job const& job, Value value_of) {
    std::optional<int> common;
    for (int const node : used_nodes(job)) {
        std::optional<int> const here = value_of(static_cast<std::size_t>(node));
        if (!here || (common && *common != *here)) return std::nullopt;
        common = here;
    }
    return common;
}

}  // namespace

std::vector<int> used_nodes(engine_job const& job) {
    expect(job.map.ranks_per_node.size() <= job.given.nodes.size(), "a mapping of this allocation");
    return used_nodes(job.map);
}

std::vector<int> used_nodes(mapping const& map) {
    std::vector<int> nodes;
    for (std::size_t n = 0; n < map.ranks_per_node.size(); ++n)
        if (map.ranks_per_node[n] > 0) nodes.push_back(static_cast<int>(n));
    return nodes;
}

int ranks_of(engine_job const& job) {
    return job.probe ? job.map.nodes_used() : job.map.world_size();
}

std::vector<std::string> rank_hosts(engine_job const& job) {
    std::vector<std::string> hosts;
    auto const add = [&](int node) { hosts.push_back(job.given.nodes.at(static_cast<std::size_t>(node)).name); };
    if (job.probe) {
        for (int const node : used_nodes(job)) add(node);
        return hosts;
    }
    for (auto const& place : job.map.places()) add(place.node);
    return hosts;
}

std::vector<std::string> guarded_shim(engine_job const& job) {
    auto shim = job.shim;
    if (!job.probe) shim.insert(shim.begin() + 2, "--guarded");
    return shim;
}

std::optional<int> ranks_on_each(engine_job const& job) {
    if (job.probe) return 1;
    return common_value(job, [&](std::size_t n) { return std::optional(job.map.ranks_per_node[n]); });
}

std::optional<int> gpus_on_each(engine_job const& job) {
    return common_value(job, [&](std::size_t n) {
        auto const& node = job.given.nodes.at(n);
        return node.gpus_counted ? std::nullopt : node.gpus;
    });
}

std::optional<std::string> beyond_first_component(engine_job const& job, environment const& variables) {
    int const size = count_slurm_components(variables);
    auto const name = "SLURM_JOB_NODELIST_HET_GROUP_0";
    if (job.given.scheduler != scheduler_kind::slurm || size < 2 || !variables.has(name)) return std::nullopt;
    auto const list = expand_hostlist(variables.get_or(name, ""), name);
    std::set<std::string, std::less<>> const first(list.begin(), list.end());
    for (int const node : used_nodes(job))
        if (auto const& host = job.given.nodes.at(static_cast<std::size_t>(node)).name; !first.contains(host))
            return fmt::format(
                "this is a heterogeneous Slurm job of {} components, and {} is not in the first one ({}); muster starts "
                "steps in that one only: use its nodes (--nodes {})",
                size, host, variables.get_or(name, ""), first.size());
    return std::nullopt;
}

void write_files(engine_command const& command) {
    for (auto const& [path, contents] : command.files) write_output_file(path, contents, "free space in its folder");
}

std::string as_lines(std::vector<std::string> const& lines) {
    std::string text;
    for (auto const& line : lines) text += line + "\n";
    return text;
}

}  // namespace muster
