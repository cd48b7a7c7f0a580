#include "launch/engine/outer_task.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/system/end_processes.hpp"
#include "pmix/identity.hpp"
#include "pmix/scrub.hpp"

namespace muster {

namespace {

/// Slurm sets these for each job's script or shell.
constexpr std::array set_anew{"SLURM_NTASKS", "SLURM_NPROCS",  "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_MPI_TYPE",
                              "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",          "SLURM_GTIDS",          "SLURM_TASK_PID"};

/// slurmd sets these for the tasks on its node; salloc does not.
constexpr std::array set_by_slurmd{"SLURM_TASK_PID",       "SLURM_PROCID",       "SLURM_LOCALID",       "SLURM_NODEID",
                                   "SLURM_GTIDS",          "SLURMD_NODENAME",    "SLURM_CPUS_ON_NODE",  "SLURM_GPUS_ON_NODE",
                                   "SLURM_JOB_GPUS",       "SLURM_STEP_GPUS",    "SLURM_RESTART_COUNT", "CUDA_VISIBLE_DEVICES",
                                   "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

/// Launchers, and no other programs, set these variables for their tasks.
constexpr std::array of_launchers{"OMPI_COMM_WORLD_", "PMIX_", "PMI_", "PMI2_", "HYDI_", "PALS_", "PRTE_", "MUSTER_"};

bool is_of_launcher(std::string_view name) {
    return std::ranges::any_of(of_launchers, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

constexpr std::array former_names{std::pair{"SLURM_JOBID", "SLURM_JOB_ID"}, std::pair{"SLURM_NODELIST", "SLURM_JOB_NODELIST"},
                                  std::pair{"SLURM_NNODES", "SLURM_JOB_NUM_NODES"},
                                  std::pair{"SLURM_PACK_SIZE", "SLURM_HET_SIZE"}};

/// Returns the variables that the process was started with; empty if they are not readable.
environment variables_of_process(std::int64_t pid) {
    environment variables;
    if (pid < 1) return variables;
    auto const text = read_text_file(fmt::format("/proc/{}/environ", pid));
    for (auto const entry : split(text, '\0'))
        if (auto const equals = entry.find('='); equals != std::string_view::npos && equals > 0)
            variables.set(entry.substr(0, equals), entry.substr(equals + 1));
    return variables;
}

/// Removes what the job's script already had from a step and from a launcher's task; nothing of the latter if a launcher within
/// the job has set any of it anew.
environment without_former_task(environment variables, environment const& script) {
    auto kept = script;
    pmix::scrub_inherited(kept);
    std::vector<std::string> former;
    bool launcher_within = false;
    for (auto const& [name, value] : script) {
        if (kept.has(name) || std::ranges::find(set_anew, name) != set_anew.end()) continue;
        bool const same = variables.get(name) == value;
        launcher_within = launcher_within || (!same && is_of_launcher(name));
        if (same) former.push_back(name);
    }
    for (auto const& name : former)
        if (!launcher_within || name.starts_with("SLURM_")) variables.unset(name);
    return variables;
}

/// Removes the Slurm job's variables: a PBS job submitted by qsub -V within a Slurm job is not part of it.
void drop_slurm_job(environment& variables, environment const& script) {
    if (!script.has("SLURM_JOB_ID")) return;
    for (auto const& [name, value] : script)
        if ((name.starts_with("SLURM_JOB") || name.starts_with("SLURM_STEP") || name.starts_with("SLURM_NODE")) &&
            variables.get(name) == value)
            variables.unset(name);
}

/// Returns the step that the variables name.
std::string told_step(environment const& variables) {
    return variables.get_or("SLURM_JOB_ID", "") + "." + variables.get_or("SLURM_STEP_ID", variables.get_or("SLURM_STEPID", ""));
}

/// Returns whether mpirun or the like started this process; its tasks also have the variables of the batch script.
bool inside_mpi_launcher(environment const& variables) {
    if (variables.has("MUSTER_LAUNCHER")) return true;  // a shim
    return !variables.has("MUSTER_RANK") &&
           (variables.has("OMPI_COMM_WORLD_SIZE") || variables.has("HYDI_CONTROL_FD") || variables.has("PRTE_LAUNCHED"));
}

std::string launcher_of(identity const& who, environment const& variables) {
    if (who.from == identity::source::muster) return "muster run";
    if (variables.has("OMPI_COMM_WORLD_SIZE")) return "mpirun";
    if (variables.has("HYDI_CONTROL_FD")) return "mpiexec";
    if (variables.has("FLUX_TASK_RANK")) return "flux run";  // first, since some sites set variables of PALS for Cray MPICH
    if (variables.has("PALS_RANKID")) return "mpiexec";
    return variables.has("SLURM_STEP_ID") || variables.has("SLURM_STEPID") ? "srun" : "mpiexec";
}

}  // namespace

environment with_present_slurm_names(environment variables) {
    if (!variables.has("SLURM_JOBID") && !variables.has("SLURM_PACK_SIZE")) return variables;
    std::vector<std::pair<std::string, std::string>> renamed;
    for (auto const& [former, present] : former_names)
        if (auto const value = variables.get(former)) renamed.emplace_back(present, *value);
    constexpr std::string_view group = "_PACK_GROUP_";
    for (auto const& [name, value] : variables)
        if (auto const at = name.find(group); at != std::string::npos)
            renamed.emplace_back(fmt::format("{}_HET_GROUP_{}", name.substr(0, at), name.substr(at + group.size())), value);
    for (auto const& [name, value] : renamed)
        if (!variables.has(name)) variables.set(name, value);
    return variables;
}

std::optional<outer_task> find_outer_task(environment const& variables) {
    try {
        auto const who = identify(variables, "");
        if (who.world_size < 2) return std::nullopt;
        auto const launcher = launcher_of(who, variables);
        // The other tasks' shells ended, because their input is empty.
        if (launcher == "srun" && variables.has("SLURM_PTY_PORT") && who.rank == 0) return std::nullopt;
        return outer_task{launcher, who.rank, who.world_size};
    } catch (error const&) {
        return std::nullopt;
    }
}

environment without_submitters_task(environment variables, std::string const& slurm_step, environment const& script) {
    if (script.size() > 0) {
        if (slurm_step.empty() && script.has("PBS_JOBID")) drop_slurm_job(variables, script);
        return without_former_task(std::move(variables), script);
    }
    if (slurm_step.empty() || slurm_step == told_step(variables)) return variables;
    bool const others_job = !slurm_step.starts_with(variables.get_or("SLURM_JOB_ID", "") + ".");
    if (inside_mpi_launcher(variables)) {
        variables.unset_prefix("SLURM_STEP");
        return variables;
    }
    auto const given = variables;
    pmix::scrub_inherited(variables);
    for (auto const name : set_anew)
        if (auto const value = given.get(name)) variables.set(name, *value);
    if (others_job)
        for (auto const name : set_by_slurmd) variables.unset(name);
    return variables;
}

environment job_script_variables(environment const& variables, std::string const& slurm_step) {
    if (slurm_step == variables.get_or("SLURM_JOB_ID", "") + ".batch")
        return variables_of_process(parse_integer(variables.get_or("SLURM_TASK_PID", "")).value_or(0));
    if (!variables.has("PBS_JOBID")) return {};
    for (pid_t pid = ::getppid(), child = ::getpid(); pid > 1; child = pid, pid = parent_of(pid))
        if (name_of_process(pid) == "pbs_mom") return variables_of_process(child);
    return {};
}

std::string slurm_step_of(environment const& variables) {
    auto const task = parse_integer(variables.get_or("SLURM_TASK_PID", ""));
    if (!task || *task < 1) return "";
    auto const parent = parent_of(static_cast<pid_t>(*task));
    if (parent < 1) return "";
    auto const title = read_text_file(fmt::format("/proc/{}/cmdline", parent));
    auto const open = title.find("slurmstepd: [");
    auto const close = title.find(']', open);
    if (open == std::string::npos || close == std::string::npos) return "";
    auto const start = title.find('[', open) + 1;
    return title.substr(start, std::min(close, title.find(' ', start)) - start);  // the step in "[12.0 stepmgr]"
}

void refuse_outer_task(environment const& variables) {
    auto const task = find_outer_task(variables);
    if (!task) return;
    bool const own = task->launcher == "muster run", of_flux = task->launcher == "flux run";
    auto const where = own       ? std::string("outside of it")
                       : of_flux ? "in the script of flux batch or the shell of flux alloc"
                                 : "without " + task->launcher;
    throw_error(errc::usage,
                "this is {} {} of {} of {} {}, and each of them would start the whole job; start muster once, {}, or give "
                "--nested if each is to start its own ranks",
                own ? "rank" : "task", task->number, task->count, own || of_flux ? "a" : "an", task->launcher, where);
}

}  // namespace muster
