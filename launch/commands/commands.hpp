// The functions of the core's commands of `muster`: one row each in launch/help/command_table.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/settings/part_functions.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// A finding of muster doctor about one thing that was examined.
struct finding {
    enum class state { ok, note, missing };
    state how;
    std::string what;
    std::string detail;
    std::string advice;  ///< what to do about it; empty: nothing
    bool operator==(finding const&) const = default;
};

/// Describes a machine on which no GPU is visible; `asked` are the GPUs that the job has there, if it has any: then no rank can
/// be placed. Pure.
finding describe_no_gpu(topology const& machine, std::optional<int> asked, bool verbose);

/// Describes whether processes can be bound: `refused` is errno of the kernel's answer, 0 where it accepts. Pure.
finding describe_binding(int refused, bind_policy wanted);

/// Describes a machine that belongs to PBS; the paths of qsub and qstat are empty if they are not on PATH. Pure.
finding describe_pbs(std::string const& qsub, std::string const& qstat);

// `muster completion` prints the completion script for a shell.

/// Returns the exit code; throws errc::usage.
int completion_command(std::vector<std::string> const& args, environment const& variables);

// `muster trace` merges timelines and explains what the ranks of a failed exchange left behind.

/// Returns the exit code; throws errc::usage, errc::not_found, errc::invalid_data.
int trace_command(std::vector<std::string> const& args, environment const& variables);

// `muster config` shows the value of every setting and its source, and checks settings files.

/// Returns the exit code; throws errc::usage and errc::config.
int config_command(std::vector<std::string> const& args, environment const& variables);

/// Returns the settings that files may set, with the values in `given`; without `all` only those that somebody has set. A table
/// for people, or JSON (schema "muster.config/1"). Pure.
std::string config_table(settings_result const& given, bool all);
std::string config_json(settings_result const& given, bool all);

// `muster doctor` examines this machine and the job, and prints what is missing and what to do.

/// Examines what muster and the programs under it need on this machine, the job, and what can start ranks on its nodes. Starts
/// only `mpirun --version` and the like.
std::vector<finding> examine(run_options const& options, environment const& variables);

/// Prints the findings, with --allocation also those of every node; returns 0, or 1 if something is missing without which ranks
/// cannot run here, or a node is unfit for them.
int doctor_command(std::vector<std::string> const& args, environment const& variables, part_functions const& parts);

// `muster hosts` prints the nodes of this job, for people and for other launchers.

int hosts_command(std::vector<std::string> const& args, environment const& variables);

/// Return the allocation in each of the forms of --format; pure.
std::string hosts_table(allocation const& given);
std::string hosts_json(allocation const& given);      ///< schema muster.hosts/1
std::string hosts_hostfile(allocation const& given);  ///< lines of "host slots=N", as mpirun and prterun read them
std::string hosts_slurm(allocation const& given);     ///< one compressed list, as for srun -w
std::string hosts_pbs(allocation const& given);       ///< each host once for each slot, like $PBS_NODEFILE

// Writes man pages of muster and of its commands in Markdown; a command prints them for the build.

/// Prints the page of muster or of a command; returns the exit code. Throws errc::usage.
int manual_command(std::vector<std::string> const& args, environment const& variables);

/// Returns the page of a command, or muster's own for an empty `command`. Pure.
std::string manual_page(std::string_view command);

// `muster plan` prints where each rank would go.

/// Prints where each rank would go, without starting anything; returns the exit code.
int plan_command(std::vector<std::string> const& args, environment const& variables);

// `muster run` reads its options and runs the job.

/// Reads the options of `muster run` and the weaker sources of settings (environment, muster.toml, site). Prints help and returns
/// nothing if that was asked for; prints notes. Throws errc::usage, errc::config.
std::optional<run_options> parse_run_options(std::vector<std::string> const& args, environment const& variables);

/// Runs the command; returns the exit code.
int run_command(std::vector<std::string> const& args, environment const& variables, part_functions const& parts);

// The hidden command `muster shim` starts and watches one rank; engines start it once for each rank.

/// Watches one rank on this node (shim.hpp). Returns the exit code of the process.
int shim_command(std::vector<std::string> const& args, environment const& variables);

// The sources of settings on this machine: muster.toml files and site files.

/// Returns ./muster.toml, $XDG_CONFIG_HOME (or ~/.config) /muster/muster.toml, and site files. Reading an unreadable file throws
/// errc::config.
settings_sources real_settings(environment const& variables);

/// Returns the folder of muster's records of submitted jobs; "" if neither XDG_STATE_HOME nor HOME is set.
std::string job_records_folder(environment const& variables);

}  // namespace muster
