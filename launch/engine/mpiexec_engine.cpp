
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/engine/engines.hpp"
#include "launch/engine/mpi_family.hpp"
#include "launch/remote/flux_remote.hpp"
#include "launch/remote/pbs_remote.hpp"

namespace muster {

namespace {

struct hydra_search {
    std::optional<mpiexec_program> program;
    std::string refusal;
};

std::string_view maker_of(std::string_view said) {
    if (said.find("Open MPI") != std::string_view::npos || said.find("OpenRTE") != std::string_view::npos)
        return "Open MPI's, which is the engine mpirun";
    if (said.find("Intel(R) MPI") != std::string_view::npos) return "Intel MPI's, which muster does not know";
    return "";
}

hydra_search search(scheduler_sources const& sources) {
    std::string others;
    for (std::string const name : {"mpiexec", "mpiexec.hydra"}) {
        auto const said = sources.run_command({name, "--version"});
        if (said.exit_status == 127) continue;
        auto const text = said.out + "\n" + said.err;
        if (auto found = read_mpiexec_version(name, text)) return {std::move(found), ""};
        auto const maker = maker_of(text);
        others +=
            fmt::format("{}{} is {}", others.empty() ? "" : "; ", name,
                        maker.empty() ? fmt::format("neither MPICH's nor PALS' ({})", first_line(said)) : std::string(maker));
    }
    return {std::nullopt, others.empty() ? "there is no mpiexec of MPICH or PALS on PATH" : others};
}

/// Returns "node1:2" for each series of ranks on one host: Hydra goes through them in order, so they can express any layout.
std::string host_runs(std::vector<std::string> const& hosts) {
    std::string text;
    for (auto first = hosts.begin(); first != hosts.end();) {
        auto const next = std::find_if(first, hosts.end(), [&](auto const& host) { return host != *first; });
        text += fmt::format("{}:{}\n", *first, next - first);
        first = next;
    }
    return text;
}

bool starts_proxies_by_srun(mpiexec_program const& program, engine_job const& job) {
    return job.given.scheduler == scheduler_kind::slurm &&
           std::ranges::find(program.launchers, "slurm") != program.launchers.end();
}

/// Since 23.11 every Slurm job has these variables, for a Hydra that starts its proxies by srun. Another launcher would get
/// srun's option: `ssh -x --external-launcher node2 hydra_pmi_proxy`. Keeps what the user has set in addition.
void drop_words_for_srun(environment& variables) {
    std::vector<std::string> kept;
    auto const words = variables.get_or("HYDRA_LAUNCHER_EXTRA_ARGS", "");
    for (auto const word : split(words, ' '))
        if (!word.empty() && word != "--external-launcher") kept.emplace_back(word);
    if (kept.empty())
        variables.unset("HYDRA_LAUNCHER_EXTRA_ARGS");
    else
        variables.set("HYDRA_LAUNCHER_EXTRA_ARGS", join(kept, " "));
    if (variables.get_or("HYDRA_BOOTSTRAP", "") == "slurm") variables.unset("HYDRA_BOOTSTRAP");
}

void add_hydra_launcher(mpiexec_program const& program, engine_job const& job, engine_command& command) {
    auto& argv = command.argv;
    auto const shell = shell_split(job.remote_shell, "--remote-shell");
    bool const by_srun = starts_proxies_by_srun(program, job);
    if (!by_srun) drop_words_for_srun(command.variables);
    if (!shell.empty() && !by_srun && !command.variables.has("HYDRA_LAUNCHER_EXEC")) {
        argv.insert(argv.end(), {"-launcher", "ssh", "-launcher-exec", shell.front()});
        if (shell.size() > 1) command.variables.set("HYDRA_LAUNCHER_EXTRA_ARGS", join(std::span(shell).subspan(1), " "));
    } else if (job.given.scheduler == scheduler_kind::pbs || job.given.scheduler == scheduler_kind::flux) {
        bool const in_pbs = job.given.scheduler == scheduler_kind::pbs;
        auto const agent = job.scratch_dir + (in_pbs ? "/tmrsh" : "/fluxrsh");
        command.files.emplace_back(agent, in_pbs ? tmrsh_script(job.shim.front()) : fluxrsh_script(job.shim.front()));
        argv.insert(argv.end(), {"-launcher", "rsh", "-launcher-exec", "/bin/sh"});
        command.variables.set("HYDRA_LAUNCHER_EXTRA_ARGS", agent);
    } else if (by_srun) {
        argv.insert(argv.end(), {"-launcher", "slurm"});
    } else {
        argv.insert(argv.end(), {"-launcher", "ssh"});
    }
}

/// Returns the variables that Hydra passes on: those that a shim needs to start. Hydra gives them to whoever calls its port
/// first, so the launcher itself sends the ranks' variables to the shims.
std::string variables_of_shims(engine_job const& job) {
    auto names = job.shim_variables;
    names.insert(names.end(), {"MUSTER_LOG", "PATH", "LD_LIBRARY_PATH"});
    return join(names, ",");
}

/// Returns whether Hydra, or what starts its proxies, needs the variable. Hydra sends all its variables to whoever calls its port
/// first, whatever -genvlist says: that names what the proxies pass on.
bool hydra_needs(std::string_view name, engine_job const& job) {
    constexpr std::array<std::string_view, 10> by_name{"HOME", "USER", "LOGNAME", "SHELL",     "PATH", "LD_LIBRARY_PATH",
                                                       "TERM", "LANG", "TZ",      "MUSTER_LOG"};
    constexpr std::array<std::string_view, 11> by_prefix{"LC_",   "SSH_",    "KRB5", "HYDRA_", "MPIEXEC_", "PBS_",
                                                         "SLURM", "COBALT_", "LSB_", "FLUX_",  "PALS_"};
    return std::ranges::find(by_name, name) != by_name.end() ||
           std::ranges::any_of(by_prefix, [&](auto prefix) { return name.starts_with(prefix); }) ||
           std::ranges::find(job.shim_variables, name) != job.shim_variables.end();
}

/// Returns whether the variable names this node's GPUs. Hydra's local proxy, which it starts itself, needs it, and the other
/// nodes' proxies have their own. srun would give it to all nodes, and on the others it would be wrong.
bool names_gpus_of_node(std::string_view name) {
    constexpr std::array<std::string_view, 5> names{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                                    "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};
    return std::ranges::find(names, name) != names.end();
}

environment variables_of_hydra(mpiexec_program const& program, engine_job const& job) {
    environment kept;
    for (auto const& [name, value] : job.variables)
        if (hydra_needs(name, job) || (names_gpus_of_node(name) && !starts_proxies_by_srun(program, job))) kept.set(name, value);
    return kept;
}

engine_command hydra_command(mpiexec_program const& program, engine_job const& job) {
    engine_command command{{program.name}, variables_of_hydra(program, job), {}, wire_up::pmi};
    auto const hosts = rank_hosts(job);
    auto const path = job.scratch_dir + "/mpiexec.hosts";
    command.files.emplace_back(path, host_runs(hosts));
    auto& argv = command.argv;
    add_hydra_launcher(program, job, command);
    argv.insert(argv.end(),
                {"-f", path, "-n", std::to_string(hosts.size()), "-bind-to", "none", "-genvlist", variables_of_shims(job)});
    if (!job.network_interface.empty()) argv.insert(argv.end(), {"-iface", job.network_interface});
    if (job.variables.has("SLURM_JOB_ID")) order_daemons_step(job, "", command.variables);
    return command;
}

/// Follows the documentation of PALS; it was not tried on a machine that has it.
engine_command pals_command(mpiexec_program const& program, engine_job const& job, scheduler_sources const& sources) {
    auto const each = ranks_on_each(job);
    if (!each)
        throw_error(errc::placement,
                    "PALS' mpiexec puts the same number of ranks on every node, and {} ranks on {} nodes do not divide so; use a "
                    "number of ranks that does, or --ranks-per-node N",
                    ranks_of(job), job.map.nodes_used());
    if (job.map.order == map_policy::node && *each > 1 && job.map.nodes_used() > 1)
        throw error(errc::placement, "PALS' mpiexec numbers ranks node by node; leave --map-by node out");
    engine_command command{{program.name}, job.variables, {}, wire_up::pmi};
    std::vector<std::string> hosts;
    for (int const node : used_nodes(job)) hosts.push_back(job.given.nodes[static_cast<std::size_t>(node)].name);
    auto const path = job.scratch_dir + "/mpiexec.hosts";
    command.files.emplace_back(path, as_lines(hosts));
    command.argv.insert(command.argv.end(), {"--hostfile", path, "-n", std::to_string(ranks_of(job)), "--ppn",
                                             std::to_string(*each), "--cpu-bind", "none", "--envall"});
    if (find_mpi(job, sources).family == mpi_family::open_mpi) {
        command.argv.push_back("--pmi=pmix");
        command.speaks = wire_up::pmix;
    }
    return command;
}

}  // namespace

std::optional<mpiexec_program> read_mpiexec_version(std::string const& name, std::string_view said) {
    if (auto const text = trim(said); text.starts_with("mpiexec version "))
        if (auto const version = find_version(text)) return mpiexec_program{mpiexec_program::maker::pals, name, *version, {}};
    if (said.find("HYDRA build details") == std::string_view::npos) return std::nullopt;
    mpiexec_program hydra{mpiexec_program::maker::hydra, name, {}, {}};
    for (auto const line : split(said, '\n')) {
        auto const text = trim(line);
        if (text.starts_with("Version:")) hydra.version = find_version(text).value_or(program_version{});
        constexpr std::string_view title = "Launchers available:";
        if (!text.starts_with(title)) continue;
        for (auto const word : split(text.substr(title.size()), ' '))
            if (!word.empty()) hydra.launchers.emplace_back(word);
    }
    return hydra;
}

std::optional<mpiexec_program> find_mpiexec(scheduler_sources const& sources) {
    return search(sources).program;
}

std::optional<std::string> mpiexec_unavailable(engine_job const& job, scheduler_sources const& sources) {
    auto const found = search(sources);
    if (!found.program) return found.refusal;
    if (auto why = has_ipv6_host(job)) return why;
    return beyond_first_component(job, sources.variables);
}

engine_command mpiexec_command(engine_job const& job, scheduler_sources const& sources) {
    auto const found = search(sources);
    if (!found.program) throw error(errc::unavailable, "mpiexec cannot start the ranks: " + found.refusal);
    auto command = found.program->from == mpiexec_program::maker::pals ? pals_command(*found.program, job, sources)
                                                                       : hydra_command(*found.program, job);
    command.argv.insert(command.argv.end(), job.extra_arguments.begin(), job.extra_arguments.end());
    auto const shim = guarded_shim(job);
    command.argv.insert(command.argv.end(), shim.begin(), shim.end());
    return command;
}

}  // namespace muster
