#include "launch/engine/outer_task.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/process/text_file.hpp"
#include "base/text.hpp"
#include "pmix/identity.hpp"
#include "pmix/scrub.hpp"

namespace muster {

namespace {

/// What Slurm sets for each job's own script or shell.
constexpr std::array set_anew{"SLURM_NTASKS", "SLURM_NPROCS",  "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_MPI_TYPE",
                              "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",          "SLURM_GTIDS",          "SLURM_TASK_PID"};

/// The step that the variables speak of.
std::string told_step(environment const& variables) {
    return variables.get_or("SLURM_JOB_ID", "") + "." + variables.get_or("SLURM_STEP_ID", variables.get_or("SLURM_STEPID", ""));
}

/// mpirun's own tasks have the variables of the batch script that it was started in.
bool inside_mpi_launcher(environment const& variables) {
    if (variables.has("MUSTER_LAUNCHER")) return true;  // a shim
    return !variables.has("MUSTER_RANK") &&
           (variables.has("OMPI_COMM_WORLD_SIZE") || variables.has("HYDI_CONTROL_FD") || variables.has("PRTE_LAUNCHED"));
}

std::string launcher_of(identity const& who, environment const& variables) {
    if (who.from == identity::source::muster) return "muster run";
    if (variables.has("OMPI_COMM_WORLD_SIZE")) return "mpirun";
    if (variables.has("HYDI_CONTROL_FD")) return "mpiexec";
    if (variables.has("FLUX_TASK_RANK")) return "flux run";  // at some sites with variables of PALS for Cray MPICH
    if (variables.has("PALS_RANKID")) return "mpiexec";
    return variables.has("SLURM_STEP_ID") || variables.has("SLURM_STEPID") ? "srun" : "mpiexec";
}

}  // namespace

std::optional<outer_task> find_outer_task(environment const& variables) {
    try {
        auto const who = identify(variables, "");
        if (who.world_size < 2) return std::nullopt;
        auto const launcher = launcher_of(who, variables);
        // The other tasks' shells have found the end of their input.
        if (launcher == "srun" && variables.has("SLURM_PTY_PORT") && who.rank == 0) return std::nullopt;
        return outer_task{launcher, who.rank, who.world_size};
    } catch (error const&) {
        return std::nullopt;
    }
}

environment without_submitters_task(environment variables, std::string const& slurm_step) {
    if (slurm_step.empty() || slurm_step == told_step(variables)) return variables;
    if (inside_mpi_launcher(variables)) {
        variables.unset_prefix("SLURM_STEP");
        return variables;
    }
    auto const given = variables;
    pmix::scrub_inherited(variables);
    for (auto const name : set_anew)
        if (auto const value = given.get(name)) variables.set(name, *value);
    return variables;
}

std::string slurm_step_of(environment const& variables) {
    auto const task = parse_integer(variables.get_or("SLURM_TASK_PID", ""));
    if (!task || *task < 1) return "";
    // "12 (bash) S 9 …": the parent is the second word behind the name, which may hold anything.
    auto const stat = read_text_file(fmt::format("/proc/{}/stat", *task));
    auto const words = split(std::string_view(stat).substr(stat.rfind(')') + 1), ' ');
    auto const parent = words.size() > 2 ? parse_integer(words[2]) : std::nullopt;
    if (!parent) return "";
    auto const title = read_text_file(fmt::format("/proc/{}/cmdline", *parent));
    auto const open = title.find("slurmstepd: [");
    auto const close = title.find(']', open);
    if (open == std::string::npos || close == std::string::npos) return "";
    auto const start = title.find('[', open) + 1;
    return title.substr(start, close - start);
}

void refuse_outer_task(environment const& variables) {
    auto const task = find_outer_task(variables);
    if (!task) return;
    bool const own = task->launcher == "muster run", of_flux = task->launcher == "flux run";
    auto const where = own       ? std::string("outside of it")
                       : of_flux ? "in the script of flux batch or the shell of flux alloc"
                                 : "without " + task->launcher;
    throw error(errc::usage, fmt::format("this is {} {} of {} of {} {}, and each of them would start the whole job; start muster "
                                         "once, {}, or give --nested if each is to start ranks of its own",
                                         own ? "rank" : "task", task->number, task->count, own || of_flux ? "a" : "an",
                                         task->launcher, where));
}

}  // namespace muster
