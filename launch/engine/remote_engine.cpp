
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "launch/engine/engines.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/remote/flux_remote.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"

namespace muster {

namespace {

/// Uses no terminal, no X and no questions that nobody could answer.
constexpr std::string_view default_shell = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=10";

/// Returns whether srun starts the agents: another shell would evade Slurm's limits and accounting.
bool is_by_srun(engine_job const& job) {
    return job.given.scheduler == scheduler_kind::slurm;
}

bool is_in_step(engine_job const& job) {
    return is_by_srun(job) && job.in_steps && (!job.probe || job.stays);
}

std::vector<host_ranks> hosts_of(engine_job const& job) {
    std::vector<host_ranks> hosts;
    std::vector<std::size_t> place(job.given.nodes.size());
    for (int const n : used_nodes(job)) {
        auto const& node = job.given.nodes.at(static_cast<std::size_t>(n));
        place[static_cast<std::size_t>(n)] = hosts.size();
        hosts.push_back({node.name, {}, is_this_host(node) && !is_in_step(job)});
    }
    if (job.probe) {
        for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].ranks = {static_cast<int>(i)};
        return hosts;
    }
    auto const places = job.map.places();
    for (std::size_t r = 0; r < places.size(); ++r)
        hosts[place[static_cast<std::size_t>(places[r].node)]].ranks.push_back(static_cast<int>(r));
    int number = job.map.world_size();
    for (auto const& one : job.waiting.places()) {
        auto& host = hosts[place[static_cast<std::size_t>(one.node)]];
        host.spare = true;
        host.ranks.push_back(number++);
    }
    return hosts;
}

/// Returns one srun, which starts what follows it once on each node, with all of the job's resources there, and gives it its
/// standard input. With steps, it is the srun of one node, whose name comes with the call.
engine_command step_for_agents(engine_job const& job, scheduler_sources const& sources) {
    auto probes = job;
    probes.probe = true;
    if (is_in_step(job)) {
        bool kept = false;
        probes.waiting = {};
        for (auto& count : probes.map.ranks_per_node) count = count > 0 && !std::exchange(kept, true) ? count : 0;
    }
    auto step = srun_command(probes, sources);
    step.argv.resize(step.argv.size() - job.shim.size());
    if (is_in_step(job))
        std::erase_if(step.argv, [&](std::string const& word) {
            return word.starts_with("--nodelist=") || (word.starts_with("--gres=") && !gpus_on_each(job));
        });
    std::ranges::replace(step.argv, std::string("--input=none"), std::string("--input=all"));
    return step;
}

}  // namespace

std::optional<std::string> remote_unavailable(engine_job const& job, scheduler_sources const& sources) {
    if (is_by_srun(job)) {
        if (auto const beyond = beyond_first_component(job, sources.variables)) return beyond;
        if (sources.run_command(slurm_words(slurm_ask::srun_version)).exit_status == 127) return "there is no srun on PATH";
        return std::nullopt;
    }
    if (job.given.scheduler == scheduler_kind::flux && job.remote_shell.empty()) return flux_exec_unavailable(sources);
    bool const by_ssh = job.given.scheduler != scheduler_kind::pbs && job.remote_shell.empty();
    if (by_ssh && sources.run_command({"ssh", "-V"}).exit_status == 127) return "there is no ssh on PATH";
    return std::nullopt;
}

engine_command remote_command_line(engine_job const& job, scheduler_sources const& sources) {
    bool const by_srun = is_by_srun(job);
    bool const in_pbs = job.given.scheduler == scheduler_kind::pbs;
    engine_command command{{job.shim.front(), "remote"}, job.variables, {}, wire_up::pmix_and_pmi};
    auto const path = fmt::format("{}/{}", job.scratch_dir, hosts_file_name);
    command.files.emplace_back(path, to_lines(hosts_of(job)));
    auto shell = job.remote_shell;
    if (shell.empty() && job.given.scheduler == scheduler_kind::flux) shell = shell_join(fluxrsh_words(job.shim.front()));
    if (shell.empty())
        shell = in_pbs ? shell_join(std::vector<std::string>{job.shim.front(), "tmrsh"}) : std::string(default_shell);
    if (by_srun) {
        auto step = step_for_agents(job, sources);
        shell = shell_join(step.argv);
        command.variables = std::move(step.variables);
        command.files.insert(command.files.end(), step.files.begin(), step.files.end());
    } else if (!job.extra_arguments.empty())
        shell += " " + shell_join(job.extra_arguments);
    auto& argv = command.argv;
    argv.insert(argv.end(), {path, "--shell=" + shell, "--pass-key=" + job.pass_key,
                             fmt::format("--lost-after={:.0f}", std::ceil(job.lost_after.count()))});
    if (!job.network_interface.empty()) argv.push_back("--interface=" + job.network_interface);
    if (in_pbs && job.remote_shell.empty()) argv.push_back("--by-scheduler");
    if (by_srun) argv.push_back(is_in_step(job) ? "--in-steps" : "--at-once");
    if (by_srun && job.munge_socket) argv.push_back("--munge-socket=" + *job.munge_socket);
    if (job.probe) argv.push_back("--probe");
    if (!job.probe && !by_srun && !in_pbs && job.try_for > duration(0))
        argv.push_back(fmt::format("--try-for={:.0f}", std::ceil(job.try_for.count())));
    argv.push_back("--");
    argv.insert(argv.end(), job.shim.begin(), job.shim.end());
    // PBS sends SIGTERM to every process of the script's session at qdel and at the time limit.
    command.own_session = in_pbs;
    return command;
}

}  // namespace muster
