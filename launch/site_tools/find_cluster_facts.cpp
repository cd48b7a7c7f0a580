// Asks the scheduler's programs, NVML and hwloc about the cluster.
#include <fmt/format.h>

#include <chrono>

#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/site_tools/cluster_facts.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

/// Returns what a command printed, if it exists and ended with 0.
std::optional<std::string> ask(std::vector<std::string> const& command, environment const& variables) {
    auto const answer = run_captured(command, variables);
    if (answer.exit_status != 0 || answer.out.empty()) return std::nullopt;
    return answer.out;
}

constexpr std::chrono::milliseconds module_limit{10'000};

std::optional<cluster_facts> ask_slurm(environment const& variables) {
    auto const sinfo = ask(slurm_words(slurm_ask::partitions, {std::string(sinfo_format)}), without_slurm_views(variables));
    if (!sinfo) return std::nullopt;
    auto facts = read_slurm_facts(*sinfo, ask(slurm_words(slurm_ask::config), variables).value_or(""));
    if (auto const user = variables.get_or("USER", ""); !user.empty())
        read_associations(ask(slurm_words(slurm_ask::accounts, {user}), variables).value_or(""), facts);
    read_partitions(ask(slurm_words(slurm_ask::partition_records), variables).value_or(""), facts);
    return facts;
}

std::optional<cluster_facts> ask_pbs(environment const& variables) {
    auto const nodes = ask({"pbsnodes", "-a", "-F", "json"}, variables);
    if (!nodes) return std::nullopt;
    auto const server = ask({"qmgr", "-c", "print server"}, variables);
    auto facts = read_pbs_facts(*nodes, server.value_or(""));
    if (!server) facts.unknown.push_back("the queues and their limits: qmgr -c 'print server' said nothing");
    return facts;
}

std::optional<cluster_facts> ask_flux(environment const& variables) {
    auto const format = [](std::string_view fields) { return fmt::format("--format={}", fields); };
    auto const nodes =
        ask({"flux", "resource", "list", "--states=free,allocated,down", "--no-header", format(flux_resource_format)}, variables);
    if (!nodes) return std::nullopt;
    auto const queues = ask({"flux", "queue", "list", "--no-header", format(flux_queue_format)}, variables);
    return read_flux_facts(*nodes, queues.value_or(""));
}

/// Returns only this machine, as NVML and hwloc see it.
cluster_facts look_here(environment const& variables) {
    cluster_facts facts{.scheduler = script_kind::local, .name = short_host_name(), .source = "hwloc and NVML on this machine"};
    auto const machine = discover_here(variables);
    node_facts node{.count = 1,
                    .gpus = static_cast<int>(machine.gpus.size()),
                    .cores = static_cast<int>(machine.cores.size()),
                    .cpus = static_cast<int>(machine.allowed().cpus.size())};
    if (!machine.gpus.empty()) node.gpu_model = machine.gpus.front().name;
    facts.shapes.push_back(node);
    return facts;
}

}  // namespace

cluster_facts find_cluster_facts(environment const& variables) {
    if (prefers_flux(variables))
        if (auto facts = ask_flux(variables)) return *facts;
    // Slurm comes before PBS, since a host with Slurm's own qsub and pbsnodes is no PBS cluster.
    if (auto facts = ask_slurm(variables)) return *facts;
    if (auto facts = ask_pbs(variables)) return *facts;
    if (auto facts = ask_flux(variables)) return *facts;
    return look_here(variables);
}

bool may_have_gpus(site const& where, environment const& variables) {
    if (auto const told = has_gpus(where)) return *told;
    auto const facts = find_cluster_facts(variables);
    return facts.scheduler != where.scheduler || facts.shapes.empty() || facts.shapes.front().gpus != 0;
}

std::vector<std::string> find_modules(environment const& variables) {
    // `module` is a function of login shells.
    auto const said =
        run_captured({"bash", "-lc", "type module >/dev/null 2>&1 && module -t avail 2>&1"}, variables, module_limit);
    return choose_modules(said.exit_status == 0 ? said.out : std::string());
}

}  // namespace muster
