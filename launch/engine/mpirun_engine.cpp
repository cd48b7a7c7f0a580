
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "launch/engine/engines.hpp"
#include "launch/engine/mpi_family.hpp"
#include "launch/remote/flux_remote.hpp"
#include "launch/remote/pbs_remote.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

/// Holds the program found under mpirun's names, or why none is usable.
struct mpirun_search {
    std::optional<mpirun_program> program;
    std::string refusal;
};

mpirun_search find_mpirun(scheduler_sources const& sources) {
    std::string others;
    for (std::string const name : {"mpirun", "mpirun.openmpi", "prterun"}) {
        auto const said = sources.run_command({name, "--version"});
        if (said.exit_status == 127) continue;
        if (auto const found = read_mpirun_version(name, said.out + "\n" + said.err)) return {found, ""};
        others += fmt::format("{}{} is not Open MPI's ({})", others.empty() ? "" : "; ", name, first_line(said));
    }
    return {std::nullopt, others.empty() ? "there is no mpirun of Open MPI and no prterun on PATH" : others};
}

/// Returns mpirun's path, by which it finds its own daemons on the other nodes, too; for a system folder the name, since they are
/// on PATH there as well.
std::string with_folder(std::string const& name, environment const& variables) {
    auto const path = find_program_or_nothing(name, variables);
    return path.empty() || path.starts_with("/usr/bin/") || path.starts_with("/bin/") ? name : path;
}

class options {
  public:
    options(mpirun_program const& program, std::vector<std::string>& argv) : program_(program), argv_(argv) {}

    void add(std::initializer_list<std::string> words) { argv_.insert(argv_.end(), words); }
    /// Sets a parameter of the launcher itself, by its name in Open MPI 4 and in PRRTE.
    void set(std::string const& open_mpi_4, std::string const& prrte, std::string const& value) {
        if (program_.prrte)
            add({"--prtemca", prrte, value});
        else
            add({"--mca", open_mpi_4, value});
    }

  private:
    mpirun_program const& program_;
    std::vector<std::string>& argv_;
};

/// Open MPI reads the slots of a Slurm job from this variable, which counts the job's tasks, not its GPUs.
void prepare_for_slurm(engine_job const& job, environment& variables) {
    order_daemons_step(job, job.this_host, variables);  // this node's daemon is mpirun itself
    auto const& ranks = job.map.ranks_per_node;
    int const most = ranks.empty() ? 1 : *std::ranges::max_element(ranks);
    auto const nodes = variables.get_or("SLURM_JOB_NUM_NODES", std::to_string(job.given.nodes.size()));
    variables.set("SLURM_TASKS_PER_NODE", fmt::format("{}(x{})", most, nodes));
}

bool has_full_names(std::vector<std::string> const& hosts) {
    return std::ranges::any_of(hosts, [](auto const& host) { return host.find('.') != std::string::npos; });
}

/// Returns hosts as mpirun knows them. The mapper compares names literally; mpirun takes its own host's name from the host,
/// without the domain unless it keeps those of all hosts. It finds PBS' hosts by short names.
std::vector<std::string> hosts_for_mpirun(engine_job const& job) {
    auto hosts = rank_hosts(job);
    auto const is_own = [&](std::string const& host) { return short_name(host) == job.this_host; };
    std::vector<std::string> others;
    std::remove_copy_if(hosts.begin(), hosts.end(), std::back_inserter(others), is_own);
    bool const all_short = job.given.scheduler == scheduler_kind::pbs;
    for (auto& host : hosts)
        if (all_short)
            host = short_name(host);
        else if (is_own(host))
            host = has_full_names(others) ? job.this_host_in_full : job.this_host;
    return hosts;
}

/// Sets the remote shell by a variable, which the user's settings override. Open MPI 5 does not read Open MPI 4's name of it, so
/// the new one passes a user's setting on. Under Slurm mpirun starts its daemons by srun.
void use_remote_shell(engine_job const& job, bool prrte, engine_command& command) {
    auto& variables = command.variables;
    for (auto const* const name : {"PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent"})
        if (auto const own = variables.get(name)) {
            if (prrte) variables.set_default("PRTE_MCA_plm_ssh_agent", *own);
            return;
        }
    if (!job.remote_shell.empty()) variables.set(prrte ? "PRTE_MCA_plm_ssh_agent" : "OMPI_MCA_plm_rsh_agent", job.remote_shell);
}

/// Uses a script in place of ssh, which is on this node only and lives as long as the daemon that it has started.
void use_agent(std::string const& path, std::string script, options& add, engine_command& command) {
    command.files.emplace_back(path, std::move(script));
    add.set("plm_rsh_agent", "plm_ssh_agent", "sh " + path);
    add.set("plm_rsh_no_tree_spawn", "plm_ssh_no_tree_spawn", "1");
    add.set("orte_leave_session_attached", "prte_leave_session_attached", "1");
}

/// PBS starts mpirun's daemons. It ends what is left of a task's session as soon as the task's first process ends, so they must
/// stay that process. mpirun gets its own session, because PBS sends SIGTERM to every process of the script's session at qdel and
/// at the time limit, and mpirun would kill its ranks one second later, whatever the grace.
void prepare_for_pbs(engine_job const& job, bool prrte, options& add, engine_command& command) {
    add.set("plm", "plm", prrte ? "ssh" : "rsh");
    command.own_session = true;
    if (job.remote_shell.empty()) use_agent(job.scratch_dir + "/tmrsh", tmrsh_script(job.shim.front(), true), add, command);
}

/// Starts mpirun's daemons by flux exec.
void prepare_for_flux(engine_job const& job, bool prrte, options& add, engine_command& command) {
    if (!job.remote_shell.empty()) return;
    add.set("plm", "plm", prrte ? "ssh" : "rsh");
    use_agent(job.scratch_dir + "/fluxrsh", fluxrsh_script(job.shim.front()), add, command);
}

}  // namespace

std::optional<mpirun_program> read_mpirun_version(std::string const& name, std::string_view said) {
    bool const open_mpi = said.find("(Open MPI)") != std::string_view::npos || said.find("(OpenRTE)") != std::string_view::npos;
    bool const prrte = said.find("(PRRTE)") != std::string_view::npos || said.find("prterun") != std::string_view::npos;
    auto const at = said.find(open_mpi ? "(Open" : "(PRRTE");
    auto const version = at == std::string_view::npos ? std::nullopt : find_version(said.substr(at));
    if (!version || !(open_mpi || prrte)) return std::nullopt;
    return mpirun_program{name, !open_mpi || version->major >= 5, open_mpi, *version};
}

std::optional<std::string> mpirun_unavailable(engine_job const& job, scheduler_sources const& sources) {
    auto const found = find_mpirun(sources);
    if (!found.program) return found.refusal;
    if (auto why = has_ipv6_host(job)) return why;
    if (job.given.scheduler == scheduler_kind::slurm &&
        sources.run_command(slurm_words(slurm_ask::srun_version)).exit_status == 127)
        return "in a Slurm job mpirun needs srun, which is not on PATH";
    return beyond_first_component(job, sources.variables);
}

engine_command mpirun_command_of(mpirun_program const& program, engine_job const& job, bool as_root) {
    engine_command command{{program.name}, job.variables, {}, wire_up::pmix};
    options add(program, command.argv);
    bool const in_pbs = job.given.scheduler == scheduler_kind::pbs;
    auto const hosts = hosts_for_mpirun(job);
    auto const path = job.scratch_dir + "/mpirun.hosts";
    command.files.emplace_back(path, as_lines(hosts));
    if (as_root) add.add({"--allow-run-as-root"});
    // One host for each rank, taken in turn, expresses every layout, and none that needs more slots than it has.
    add.add({"--hostfile", path, "--map-by", "seq", "-np", std::to_string(hosts.size()), "--bind-to", "none"});
    if (job.probe) add.add({"--stdin", "none"});
    if (has_full_names(hosts)) add.set("orte_keep_fqdn_hostnames", "prte_keep_fqdn_hostnames", "1");
    use_remote_shell(job, program.prrte, command);
    if (in_pbs) prepare_for_pbs(job, program.prrte, add, command);
    if (job.given.scheduler == scheduler_kind::flux) prepare_for_flux(job, program.prrte, add, command);
    // So that its srun is heard, which says who ends the daemons. PRRTE keeps silent about that anyway, and its daemons would hear what scancel sends.
    if (job.given.scheduler == scheduler_kind::slurm && !job.probe && !program.prrte)
        add.set("orte_leave_session_attached", "prte_leave_session_attached", "1");
    if (!job.network_interface.empty()) {
        add.set("oob_tcp_if_include", "prte_if_include", job.network_interface);
        if (program.prrte)
            add.add({"-x", "OMPI_MCA_btl_tcp_if_include=" + job.network_interface});
        else
            add.add({"--mca", "btl_tcp_if_include", job.network_interface});
    }
    for (auto const& name : job.shim_variables) add.add({"-x", name});
    command.argv.insert(command.argv.end(), job.extra_arguments.begin(), job.extra_arguments.end());
    auto const shim = guarded_shim(job);
    command.argv.insert(command.argv.end(), shim.begin(), shim.end());
    if (job.variables.has("SLURM_JOB_ID")) prepare_for_slurm(job, command.variables);
    return command;
}

engine_command mpirun_command(engine_job const& job, scheduler_sources const& sources) {
    auto found = find_mpirun(sources);
    if (!found.program) throw error(errc::unavailable, "mpirun cannot start the ranks: " + found.refusal);
    found.program->name = with_folder(found.program->name, job.variables);
    return mpirun_command_of(*found.program, job, ::geteuid() == 0);
}

}  // namespace muster
