// The job that an engine starts, and what the engines' command lines have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/process/run_captured.hpp"
#include "base/units.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/wire/shim_directions.hpp"

namespace muster {

/// Says what to start: `shim` once for each rank, where `map` says.
struct engine_job {
    allocation given;
    mapping map;
    mapping waiting = {};                      ///< further shims, on other nodes: their numbers follow those of the world
    std::string this_host;                     ///< short name of the machine that runs muster run
    std::string this_host_in_full;             ///< the machine's own name for itself, which may be short, too
    std::vector<std::string> shim;             ///< argv of the rank shim: absolute path of muster first
    std::vector<std::string> command;          ///< the ranks' program and its arguments, as given
    std::string working_dir;                   ///< the ranks' folder; empty: this process' folder
    std::string program;                       ///< the ranks' program as found here, or empty: shows which MPI it is linked with
    environment variables;                     ///< those of the engine's process; they include the shims'
    std::vector<std::string> shim_variables;   ///< names of variables that must reach each shim, whatever the engine passes on
    std::vector<std::string> extra_arguments;  ///< --engine-args, which follow muster's own options
    std::string scratch_dir;                   ///< a folder on this machine for the engine's files
    std::string network_interface;             ///< --network-interface, or empty
    std::string remote_shell;                  ///< --remote-shell, or empty
    std::string pass_key = "auto";             ///< --pass-key
    std::optional<std::string> munge_socket;   ///< see shim_directions_request
    duration lost_after{15};                   ///< a node that is silent for this long is lost
    duration try_for{0};                       ///< how long to repeat a remote shell that fails
    bool in_steps = false;                     ///< with the engine remote in a Slurm job: each node gets its own step
    bool probe = false;                        ///< one shim on each node that looks around: no PMIx, no GPU binding
    bool stays = false;                        ///< such a shim is a keeper, which outlives other nodes in its own step
};

/// The protocol over which an MPI library meets its world below an engine.
enum class wire_up {
    none,  ///< no protocol: each rank would come up alone
    pmix,
    pmi,           ///< PMI-1 or PMI-2
    pmix_and_pmi,  ///< PMIx and PMI-1
};

/// Says how to start an engine, to print it (--dry-run) and to run it.
struct engine_command {
    std::vector<std::string> argv;
    environment variables;
    std::vector<std::pair<std::string, std::string>> files;  ///< path and contents; write them first
    wire_up speaks = wire_up::pmix;
    std::string note = {};     ///< what the user should know about it, or empty
    bool own_session = false;  ///< signals to this process' session do not reach it
    bool operator==(engine_command const&) const = default;
};

/// Returns one host for each rank, in order of rank; for a probe, each used node once.
std::vector<std::string> rank_hosts(engine_job const& job);

/// Returns the number of ranks (of a probe: shims), and the nodes that they are on.
int ranks_of(engine_job const& job);
std::vector<int> used_nodes(engine_job const& job);  ///< with those of `waiting` at the end
std::vector<int> used_nodes(mapping const& map);

/// Returns the shim below a guard, for engines whose daemons would kill it before it has ended its rank; a probe as it is.
std::vector<std::string> guarded_shim(engine_job const& job);

/// Returns the number that all used nodes have in common, or nothing.
std::optional<int> ranks_on_each(engine_job const& job);
/// Counts only GPUs that the scheduler knows and that a command can request.
std::optional<int> gpus_on_each(engine_job const& job);

/// Returns why mpirun and mpiexec cannot run on nodes of which one has an IPv6 address as its name: their host files cannot
/// express it. Pure.
std::optional<std::string> has_ipv6_host(engine_job const& job);

/// Returns why a step cannot span all these nodes: a step of one command, srun's own or the one that mpirun or mpiexec makes for
/// its daemons, lies in one component of a heterogeneous Slurm job, by default the first. Returns nothing for any other job.
std::optional<std::string> beyond_first_component(engine_job const& job, environment const& variables);

/// Writes the files of an engine's command. Throws errc::io.
void write_files(engine_command const& command);

/// Joins lines for a file.
std::string as_lines(std::vector<std::string> const& lines);

// Describes a run to an engine.

/// Returns the job for an engine whose shims go where `map` says: the ranks' shims, or one probe on each node. Files for the
/// engine go into `scratch_dir`. `run.options.command` may be empty. Throws errc::system.
engine_job describe_engine_job(run_plan const& run, mapping const& map, std::string const& scratch_dir);

/// Says how the shims of that job, started by `engine`, find the launcher.
shim_directions_request directions_request(engine_job const& job, run_options const& options, std::string_view engine);

}  // namespace muster
