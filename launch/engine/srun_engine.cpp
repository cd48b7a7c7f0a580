#include "launch/engine/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/mpi_family.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

namespace muster {

namespace {

using namespace std::string_view_literals;

/// srun reads these like options, and salloc, sbatch or an outer step may have set them for their own use.
constexpr std::array orders{
    // the layout
    "SLURM_DISTRIBUTION"sv, "SLURM_DIST_PLANESIZE"sv, "SLURM_HOSTFILE"sv, "SLURM_NTASKS_PER_NODE"sv, "SLURM_NTASKS_PER_CORE"sv,
    "SLURM_NTASKS_PER_SOCKET"sv, "SLURM_NTASKS_PER_GPU"sv, "SLURM_NTASKS_PER_TRES"sv, "SLURM_SPREAD_JOB"sv,
    "SLURM_USE_MIN_NODES"sv, "SLURM_OVERCOMMIT"sv, "SLURM_NSOCKETS_PER_NODE"sv, "SLURM_NCORES_PER_SOCKET"sv,
    "SRUN_SEGMENT_SIZE"sv, "SLURM_SPREAD_SEGMENTS"sv, "SLURM_CONSOLIDATE_SEGMENTS"sv, "SLURM_ARBITRARY_NODELIST"sv,
    // processors and memory: the step gets all that the job has, and the shim divides it
    "SLURM_CPUS_PER_TASK"sv, "SRUN_CPUS_PER_TASK"sv, "SLURM_CPUS_PER_GPU"sv, "SLURM_TRES_PER_TASK"sv, "SLURM_EXACT"sv,
    "SLURM_EXCLUSIVE"sv, "SLURM_WHOLE"sv, "SLURM_HINT"sv, "SLURM_CORE_SPEC"sv, "SLURM_THREAD_SPEC"sv, "SLURM_THREADS_PER_CORE"sv,
    "SLURM_MEM_PER_CPU"sv, "SLURM_MEM_PER_GPU"sv, "SLURM_MEM_PER_NODE"sv, "SLURM_CPU_BIND"sv, "SLURM_CPU_BIND_LIST"sv,
    "SLURM_CPU_BIND_TYPE"sv, "SLURM_CPU_BIND_VERBOSE"sv, "SLURM_MEM_BIND"sv, "SLURM_MEM_BIND_LIST"sv, "SLURM_MEM_BIND_PREFER"sv,
    "SLURM_MEM_BIND_SORT"sv, "SLURM_MEM_BIND_TYPE"sv, "SLURM_MEM_BIND_VERBOSE"sv,
    // GPUs: bound to tasks, they would hide neighbours' GPUs from a rank. Since 23.11 SLURM_TRES_BIND says what
    // SLURM_GPUS_PER_TASK and SLURM_GPU_BIND said before.
    "SLURM_TRES_BIND"sv, "SLURM_GPUS"sv, "SLURM_GPUS_PER_NODE"sv, "SLURM_GPUS_PER_SOCKET"sv, "SLURM_GPUS_PER_TASK"sv,
    "SLURM_GPU_BIND"sv, "SLURM_GRES"sv, "SLURM_STEP_GRES"sv, "SLURM_GRES_FLAGS"sv,
    // input, output, end
    "SRUN_INPUT"sv, "SRUN_OUTPUT"sv, "SRUN_ERROR"sv, "SLURM_STDINMODE"sv, "SLURM_STDOUTMODE"sv, "SLURM_STDERRMODE"sv,
    "SLURM_LABELIO"sv, "SLURM_UNBUFFEREDIO"sv, "SLURM_OPEN_MODE"sv, "SLURM_WAIT"sv, "SLURM_KILL_BAD_EXIT"sv, "SLURM_NO_KILL"sv,
    "SLURM_IMMEDIATE"sv, "SLURM_DEPENDENCY"sv, "SLURM_TIMELIMIT"sv, "SLURM_SIGNAL"sv, "SLURM_EXIT_ERROR"sv,
    "SLURM_EXIT_IMMEDIATE"sv, "SLURM_TEST_EXEC"sv,
    // the rest; srun 25.05 fails with SLURM_EXTERNAL_LAUNCHER=1
    "SLURM_EXTERNAL_LAUNCHER"sv, "SLURM_SRUN_MULTI"sv, "SLURM_MPI_TYPE"sv, "SLURM_EXPORT_ENV"sv, "SRUN_EXPORT_ENV"sv,
    "SLURM_REMOTE_CWD"sv, "SLURM_WORKING_DIR"sv};

constexpr program_version first_with_overlap{20, 11};
constexpr program_version taken_for_granted{22, 5};  ///< if srun does not print its version

/// Holds the plugin for --mpi, or why there is no suitable one.
struct mpi_choice {
    std::string plugin;
    std::string note;
    std::string refusal;
};

std::string first_of(std::vector<std::string> const& listed, std::initializer_list<std::string_view> wanted) {
    for (auto const name : wanted)
        for (auto const& plugin : listed)
            if (plugin == name || (name == "pmix" && plugin.starts_with("pmix_v"))) return plugin;
    return "";
}

/// Slurm 26.05 gives the job's script a number, too: -5. As an unsigned number it is above those of all steps.
bool is_in_step(environment const& variables) {
    auto const step = parse_integer(variables.get_or("SLURM_STEP_ID", ""));
    return step && *step >= 0 && *step < 0xffff'fff0;
}

/// Returns the plugin that the user or a module asks for. A step's tasks get their step's plugin in the same variable.
std::string asked_plugin(environment const& variables, std::vector<std::string> const& listed) {
    auto const asked = variables.get_or("SLURM_MPI_TYPE", "");
    return asked == "none" || is_in_step(variables) ? "" : first_of(listed, {asked});
}

mpi_choice choose_plugin(engine_job const& job, scheduler_sources const& sources, std::vector<std::string> const& listed) {
    if (job.probe) return {"none", "", ""};
    auto const mpi = find_mpi(job, sources);
    if (mpi.family == mpi_family::none)
        if (auto const asked = asked_plugin(sources.variables, listed); !asked.empty()) return {asked, "", ""};
    // A script loads the library of this module.
    if (mpi.family == mpi_family::none && job.variables.has("CRAY_MPICH_DIR") && !first_of(listed, {"cray_shasta"}).empty())
        return {"cray_shasta", "", ""};
    std::string const here = fmt::format("srun --mpi=list says: {}", listed.empty() ? "nothing" : join(listed, ", "));
    if (mpi.family == mpi_family::mpich || mpi.family == mpi_family::cray) {
        auto const plugin =
            mpi.family == mpi_family::cray ? first_of(listed, {"cray_shasta", "pmi2"}) : first_of(listed, {"pmi2"});
        if (!plugin.empty()) return {plugin, "", ""};
        return {"", "",
                fmt::format("{} uses {}, which needs PMI-2, and this Slurm has none ({}); use that MPI's own mpiexec "
                            "(--engine mpiexec)",
                            job.program, mpi.library, here)};
    }
    if (auto const plugin = first_of(listed, {"pmix"}); !plugin.empty()) return {plugin, "", ""};
    if (mpi.family == mpi_family::open_mpi)
        return {"", "",
                fmt::format("{} uses {}, which needs PMIx, and this Slurm has no PMIx plugin ({}); use Open MPI's own "
                            "mpirun (--engine mpirun), or ask the site for Slurm with PMIx",
                            job.program, mpi.library, here)};
    return {"none",
            fmt::format("this Slurm has no PMIx plugin ({}): ranks that load MPI at run time (mpi4py) would each come up alone; "
                        "for those use --engine mpirun",
                        here),
            ""};
}

wire_up speech_of(std::string_view plugin) {
    if (plugin == "none") return wire_up::none;
    return plugin.starts_with("pmix") ? wire_up::pmix : wire_up::pmi;
}

mpi_choice ask_for_plugin(engine_job const& job, scheduler_sources const& sources) {
    if (job.probe) return choose_plugin(job, sources, {});
    auto const said = sources.run_command(slurm_words(slurm_ask::mpi_plugins));
    return choose_plugin(job, sources, parse_mpi_list(said.out + "\n" + said.err));
}

bool has_too_few_cpus(engine_job const& job) {
    auto const nodes = used_nodes(job);
    return !job.probe && std::ranges::any_of(nodes, [&](int node) {
        auto const at = static_cast<std::size_t>(node);
        return job.given.nodes.at(at).cpus.value_or(0) < job.map.ranks_per_node.at(at);
    });
}

std::string step_name(engine_job const& job) {
    auto const name = job.program.substr(job.program.rfind('/') + 1);
    return name.empty() || job.probe ? "muster" : name;
}

/// Returns whether numbers alone make srun use this layout: equally many ranks on each node, as neighbours, nodes in the job's
/// order, and equally many processors on each node. If processors differ, srun makes 6 and 2 tasks of --ntasks-per-node=4.
bool is_block(engine_job const& job, std::vector<std::string> const& hosts) {
    auto const each = ranks_on_each(job);
    auto const nodes = used_nodes(job);
    if (!each) return false;
    auto const of_job = job.variables.get_or("SLURM_JOB_NODELIST", "");
    auto const in_order = of_job.empty() ? hosts : expand_hostlist(of_job, "SLURM_JOB_NODELIST");
    auto from = in_order.begin();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        auto const& node = job.given.nodes.at(static_cast<std::size_t>(nodes[n]));
        if (node.cpus != job.given.nodes.at(static_cast<std::size_t>(nodes[0])).cpus) return false;
        from = std::find(from, in_order.end(), node.name);
        if (from == in_order.end()) return false;
        auto const first = hosts.begin() + static_cast<std::ptrdiff_t>(n) * *each;
        if (!std::all_of(first, first + *each, [&](auto const& host) { return host == node.name; })) return false;
    }
    return true;
}

/// Names every rank's node (a file with one host for each rank, arbitrary distribution), since srun does not always obey numbers.
/// srun counts the file's nodes itself, and since 23.11 refuses their number ("--nodes is incompatible with
/// --distribution=arbitrary"). But Slurm's PMI-2 then tells MPICH that each rank is alone on its node, so MPICH gets numbers if
/// they are enough.
void add_layout(engine_job const& job, engine_command& command) {
    auto& argv = command.argv;
    int const nodes = job.map.nodes_used();
    argv.push_back(fmt::format("--ntasks={}", ranks_of(job)));
    if (auto const each = ranks_on_each(job)) argv.push_back(fmt::format("--ntasks-per-node={}", *each));
    auto const hosts = rank_hosts(job);
    if (nodes == 1) {
        argv.insert(argv.end(), {"--nodes=1", "--nodelist=" + hosts.front()});
    } else if (command.speaks == wire_up::pmi && is_block(job, hosts)) {
        auto names = hosts;
        names.erase(std::unique(names.begin(), names.end()), names.end());
        argv.push_back(fmt::format("--nodes={}", nodes));
        argv.insert(argv.end(), {"--distribution=block", "--nodelist=" + join(names, ",")});
    } else {
        if (command.speaks == wire_up::pmi && ranks_of(job) > nodes)
            command.note =
                "with this layout Slurm does not tell MPICH which ranks share a node: MPI_Comm_split_type finds each of them "
                "alone, and messages within a node go over the network; with the same number of ranks on each node, in order, it "
                "does";
        auto const path = job.scratch_dir + "/srun.hosts";
        command.files.emplace_back(path, as_lines(hosts));
        argv.insert(argv.end(), {"--distribution=arbitrary", "--nodelist=" + path});
    }
    if (has_too_few_cpus(job)) argv.push_back("--overcommit");
}

/// Returns the GPUs of the nodes except for `left_out`. If the user has named slots, the nodes may have more GPUs than these, and
/// Slurm could give the step the right sum in the wrong places; a step that requests none has all of the job's (but not in a job
/// by --gpus).
std::optional<int> sum_of_gpus(engine_job const& job, std::string const& left_out = {}) {
    int sum = 0;
    for (int const n : used_nodes(job)) {
        auto const& node = job.given.nodes.at(static_cast<std::size_t>(n));
        if (!node.gpus || node.gpus_counted) return std::nullopt;
        if (node.slots_named && !job.variables.has("SLURM_GPUS")) return std::nullopt;
        if (node.name != left_out) sum += *node.gpus;
    }
    return sum;
}

/// Returns the sum of GPUs if a step has to request that; nothing if each node's number is requested. Slurm refuses --gres for a
/// step on one node of a job by --gpus; on nodes whose GPUs differ no --gres is right.
std::optional<int> gpus_by_sum(engine_job const& job) {
    auto const sum = sum_of_gpus(job);
    bool const by_sum = job.map.nodes_used() == 1 ? job.variables.has("SLURM_GPUS") : !gpus_on_each(job);
    return sum && *sum > 0 && by_sum ? sum : std::nullopt;
}

/// Gives the step all of the job's resources on its nodes. Without --cpus-per-task it has all their processors; with it, each
/// task would have that many and no more (it implies --exact), and too many if the job counts cores and not threads.
void add_resources(engine_job const& job, program_version const& version, engine_command& command) {
    auto& argv = command.argv;
    auto const sum = gpus_by_sum(job);
    auto const each = gpus_on_each(job);
    // A step without --overlap waits for the step of an interactive shell; with it, Slurm refuses a sum over nodes that differ
    // ("Insufficient GRES available in allocation").
    if (version >= first_with_overlap && (!sum || each)) argv.push_back("--overlap");
    argv.push_back("--mem=0");
    if (sum)
        argv.push_back(fmt::format("--gpus={}", *sum));
    else if (each && *each > 0)
        argv.push_back(fmt::format("--gres=gpu:{}", *each));
}

}  // namespace

std::vector<std::string> parse_mpi_list(std::string_view text) {
    std::vector<std::string> plugins;
    for (auto line : split(text, '\n')) {
        line = trim(line);
        if (line.starts_with("srun: ")) line = trim(line.substr(6));
        if (constexpr auto start = "specific pmix plugin versions available:"sv; line.starts_with(start))
            line = line.substr(start.size());
        else if (line.find(' ') != std::string_view::npos)
            continue;  // "MPI plugin types are..."
        for (auto const word : split(line, ','))
            if (auto const name = trim(word); !name.empty()) plugins.emplace_back(name);
    }
    return plugins;
}

void unset_srun_orders(environment& variables) {
    for (auto const name : orders) variables.unset(name);
}

void order_daemons_step(engine_job const& job, std::string const& left_out, environment& variables) {
    unset_srun_orders(variables);
    auto const each = gpus_on_each(job);
    auto const sum = each ? std::nullopt : sum_of_gpus(job, left_out);
    if (sum && *sum > 0)
        variables.set("SLURM_GPUS", std::to_string(*sum));  // and no --overlap, as in add_resources
    else
        variables.set("SLURM_OVERLAP", "1");
    if (each && *each > 0) variables.set("SLURM_GRES", fmt::format("gpu:{}", *each));
}

std::optional<std::string> srun_unavailable(engine_job const& job, scheduler_sources const& sources) {
    if (!sources.variables.has("SLURM_JOB_ID")) return "this is no Slurm job (SLURM_JOB_ID is not set)";
    if (job.given.scheduler != scheduler_kind::slurm)
        return fmt::format("the nodes come from {}, not from Slurm", to_string(job.given.scheduler));
    if (auto const beyond = beyond_first_component(job, sources.variables)) return beyond;
    auto const version = sources.run_command(slurm_words(slurm_ask::srun_version));
    if (version.exit_status == 127) return "there is no srun on PATH";
    if (version.exit_status != 0) return fmt::format("srun --version failed ({}): {}", version.exit_status, first_line(version));
    if (auto const choice = ask_for_plugin(job, sources); !choice.refusal.empty()) return choice.refusal;
    return std::nullopt;
}

engine_command srun_command(engine_job const& job, scheduler_sources const& sources) {
    auto const version = find_version(sources.run_command(slurm_words(slurm_ask::srun_version)).out).value_or(taken_for_granted);
    auto const mpi = ask_for_plugin(job, sources);
    if (!mpi.refusal.empty()) throw error(errc::unavailable, "srun cannot start the ranks: " + mpi.refusal);
    engine_command command{
        slurm_words(slurm_ask::step, {step_name(job), mpi.plugin}), job.variables, {}, speech_of(mpi.plugin), mpi.note};
    for (auto const& argument : job.extra_arguments)
        if (argument.starts_with("--mpi=")) command.speaks = speech_of(argument.substr(6));
    add_layout(job, command);
    add_resources(job, version, command);
    auto& argv = command.argv;
    // The shim binds. If no setting makes srun bind, it would complain about this option.
    if (binds_tasks(sources.run_command(slurm_words(slurm_ask::config)).out)) argv.push_back("--cpu-bind=none");
    argv.push_back(job.probe ? "--kill-on-bad-exit=0" : "--kill-on-bad-exit=1");  // one bad node says nothing about the others
    argv.insert(argv.end(), {"--wait=0", "--export=ALL", job.probe ? "--input=none" : "--input=0"});
    argv.insert(argv.end(), job.extra_arguments.begin(), job.extra_arguments.end());
    argv.insert(argv.end(), job.shim.begin(), job.shim.end());
    unset_srun_orders(command.variables);
    return command;
}

std::vector<std::string> srun_cancel(std::string const& step) {
    return slurm_words(slurm_ask::cancel, {step});
}

}  // namespace muster
