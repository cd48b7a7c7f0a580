// The job that an engine is to start, and what the engines' command lines have in common.
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

/// What is to be started: `shim` once a rank, where `map` says.
struct engine_job {
    allocation given;
    mapping map;
    mapping waiting = {};                      ///< of further shims, on other nodes: their numbers lie behind those of the world
    std::string this_host;                     ///< short name of the machine that muster run is on
    std::string this_host_in_full;             ///< the same as the machine itself says it, which may be short, too
    std::vector<std::string> shim;             ///< argv of the rank shim: absolute path of muster first
    std::vector<std::string> command;          ///< the ranks' program and its arguments, as given
    std::string working_dir;                   ///< of the ranks; empty: this process' own
    std::string program;                       ///< the ranks' program as found here, or empty: tells which MPI it is linked with
    environment variables;                     ///< of the engine's own process; the shims' are among them
    std::vector<std::string> shim_variables;   ///< names of those that must reach each shim, whatever the engine passes on
    std::vector<std::string> extra_arguments;  ///< --engine-args, put behind muster's own options
    std::string scratch_dir;                   ///< where files for the engine may be written, on this machine
    std::string network_interface;             ///< --network-interface, or empty
    std::string remote_shell;                  ///< --remote-shell, or empty
    std::string pass_key = "auto";             ///< --pass-key
    std::optional<std::string> munge_socket;   ///< see shim_directions_request
    duration lost_after{15};                   ///< a node that is silent for so long is lost
    duration try_for{0};                       ///< a remote shell that fails is tried again for so long
    bool in_steps = false;                     ///< by the engine remote in a Slurm job: each node in a step for itself
    bool probe = false;                        ///< one shim a node that looks around: no PMIx, no GPU binding
    bool stays = false;                        ///< of such: a keeper, which outlives other nodes in a step for itself
};

/// Over what an MPI library meets its world below an engine.
enum class wire_up {
    none,  ///< it cannot: each rank would come up alone
    pmix,
    pmi,           ///< PMI-1 or PMI-2
    pmix_and_pmi,  ///< PMIx and PMI-1
};

/// How to start an engine: what is needed to print it (--dry-run) and to run it.
struct engine_command {
    std::vector<std::string> argv;
    environment variables;
    std::vector<std::pair<std::string, std::string>> files;  ///< path and contents, to be written first
    wire_up speaks = wire_up::pmix;
    std::string note = {};     ///< what the user should know about it, or empty
    bool own_session = false;  ///< out of reach of signals to this process' session
    bool operator==(engine_command const&) const = default;
};

/// One host a rank, in order of rank; of a probe, each used node once.
std::vector<std::string> rank_hosts(engine_job const& job);

/// Ranks (of a probe: shims) and the nodes they are on.
int ranks_of(engine_job const& job);
std::vector<int> used_nodes(engine_job const& job);  ///< those of `waiting` at the end
std::vector<int> used_nodes(mapping const& map);

/// The shim behind a guard, for engines whose daemons kill what they have started before it has ended its rank; a probe as it is.
std::vector<std::string> guarded_shim(engine_job const& job);

/// The number that all used nodes have in common, or nothing.
std::optional<int> ranks_on_each(engine_job const& job);
/// Of GPUs, only those that the scheduler knows of and can be asked for.
std::optional<int> gpus_on_each(engine_job const& job);

/// Why mpirun and mpiexec cannot run on these nodes, one of which has an IPv6 address for a name: their host files have no way to say it. Pure.
std::optional<std::string> has_ipv6_host(engine_job const& job);

/// Why a step cannot be on all these nodes: a step of one command, srun's own or one that mpirun or mpiexec makes for its
/// daemons, lies in one component of a heterogeneous Slurm job, the first unless told otherwise. Nothing in any other job.
std::optional<std::string> beyond_first_component(engine_job const& job, environment const& variables);

/// Writes the files of an engine's command. Throws errc::io.
void write_files(engine_command const& command);

/// Lines for a file.
std::string as_lines(std::vector<std::string> const& lines);

// Describes a run to an engine.

/// The job for an engine whose shims go where `map` says: the ranks' shims, or one probe a node. Files for the engine go into
/// `scratch_dir`. `run.options.command` may be empty. Throws errc::system.
engine_job describe_engine_job(run_plan const& run, mapping const& map, std::string const& scratch_dir);

/// How the shims of that job, started by `engine`, are to find the launcher.
shim_directions_request directions_request(engine_job const& job, run_options const& options, std::string_view engine);

}  // namespace muster
