#include "launch/engine/engine_job.hpp"

#include <fmt/format.h>

#include <functional>
#include <set>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/this_process.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/hosts/bracketed_address.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"
#include "launch/system/network.hpp"
#include "pmix/scrub.hpp"

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
    auto nodes = used_nodes(job.map);
    for (int const node : used_nodes(job.waiting)) nodes.push_back(node);
    return nodes;
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

std::optional<std::string> has_ipv6_host(engine_job const& job) {
    for (int const node : used_nodes(job))
        if (auto const& host = job.given.nodes.at(static_cast<std::size_t>(node)).name; is_ipv6_address(without_user(host)))
            return fmt::format("it cannot be given the IPv6 address {}; write the host's name, or use the engine remote", host);
    return std::nullopt;
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
                "this is a heterogeneous Slurm job of {} components, and {} is not in the first one, the only one in which "
                "muster starts ranks, by any engine; give -H {} for that one, ask for the nodes without a colon, or start the "
                "program by "
                "srun --het-group",
                size, host, variables.get_or(name, ""));
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

namespace {

constexpr duration shortest_tries{
    5};  ///< for reaching a host without --start-timeout: its name or its sshd may come seconds after this launcher

/// Returns the engine's variables: what Slurm said about the job, but nothing of an outer launcher.
environment engine_variables(environment const& inherited) {
    environment variables = inherited;
    pmix::scrub_inherited(variables);
    for (auto const name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
        if (auto const value = inherited.get(name)) variables.set(name, *value);
    return variables;
}

}  // namespace

engine_job describe_engine_job(run_plan const& run, mapping const& map, std::string const& scratch_dir) {
    auto const& options = run.options;
    engine_job job;
    job.given = run.given;
    job.map = map;
    job.waiting = run.waiting;
    job.this_host = short_host_name();
    job.this_host_in_full = host_name();
    job.shim = {self_program().string(), "shim"};
    job.variables = engine_variables(run.inherited);
    apply_exports(job.variables, options.exports);
    leave_out(job.variables, options.unexported, options.exports);
    job.command = options.command;
    job.working_dir = options.working_dir;
    job.shim_variables = {"MUSTER_LAUNCHER", "MUSTER_TOKEN"};
    job.extra_arguments = options.engine_args;
    job.scratch_dir = scratch_dir;
    job.network_interface = options.network_interface;
    job.remote_shell = options.remote_shell;
    job.pass_key = options.pass_key;
    if ((job.pass_key == "auto" || job.pass_key == "munge") && job.given.scheduler == scheduler_kind::slurm)
        job.munge_socket = munge_socket(run.sources.run_command(slurm_words(slurm_ask::config)).out);
    job.in_steps = options.is_elastic();
    job.lost_after = options.lost_after();
    if (run.life.is_first() && options.start_timeout)  // the last try has to be reported before the limit
        job.try_for = std::max(*options.start_timeout - duration(2), duration(0));
    else if (run.life.is_first())
        job.try_for = shortest_tries;
    try {
        if (!options.command.empty()) job.program = find_program(options.command.front(), job.variables, options.working_dir);
    } catch (program_error const&) {
        job.program.clear();  // it may exist on the nodes only; their shims report it if it does not
    }
    return job;
}

shim_directions_request directions_request(engine_job const& job, run_options const& options, std::string_view engine) {
    shim_directions_request request;
    request.interface = options.network_interface;
    request.pass_key = parse_key_way(options.pass_key);
    request.munge_socket = job.munge_socket;
    request.engine = engine;
    request.variables = job.variables;
    request.needed = {job.shim.front(), absolute_path(options.working_dir.empty() ? "." : options.working_dir)};
    for (auto const& host : rank_hosts(job)) {
        if (short_name(host) == job.this_host) continue;
        request.other_node = host;
        break;
    }
    return request;
}

}  // namespace muster
