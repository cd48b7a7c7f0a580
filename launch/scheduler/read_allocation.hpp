// Which scheduler's job this is, and what it gave.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// What a scheduler's command printed.
struct command_output {
    int exit_status = 0;  ///< 127: there is no such program; 124: it took too long and was killed
    std::string out;
    std::string err;
};

/// All that a reader may look at: plain functions, so that captured answers can stand in for a cluster.
struct scheduler_sources {
    environment const& variables;
    std::function<std::optional<std::string>(std::string const& path)> read_file;  ///< nothing: there is no such file
    std::function<command_output(std::vector<std::string> const& argv)> run_command;
    std::function<node()> this_node;  ///< what this machine alone offers; costs a look at its hardware
};

/// The real ones. Commands are killed after `command_limit`; their standard input is empty. `variables` must outlive the result.
scheduler_sources real_sources(environment const& variables, std::function<node()> this_node);

/// What the user says about where the nodes come from; all empty: muster finds out.
struct allocation_choice {
    std::optional<scheduler_kind> scheduler;  ///< --scheduler
    std::string hostfile;                     ///< --hostfile
    std::string hosts;                        ///< -H: "a:4,b:4", or a hostlist "node[1-4]:4"
    bool operator==(allocation_choice const&) const = default;
};

struct scheduler_row {
    scheduler_kind kind;
    /// Why this process is in no job of this scheduler; nothing if it is.
    std::optional<std::string> (*unavailable)(scheduler_sources const& sources, allocation_choice const& choice);
    /// Throws parse_error with a caret, errc::not_found, errc::placement.
    allocation (*read)(scheduler_sources const& sources, allocation_choice const& choice);
};

/// Tried in this order: hosts and host files that the user names, then slurm, pbs, cobalt, lsf, flux, and this node alone.
std::span<scheduler_row const> schedulers() noexcept;

/// The first row that is available, or the one asked for. `tried`, if given, gets a line a row that was refused: "pbs: PBS_JOBID
/// is not set". Throws errc::unavailable if the one asked for is not, with the reason.
allocation read_allocation(scheduler_sources const& sources, allocation_choice const& choice,
                           std::vector<std::string>* tried = nullptr);

}  // namespace muster
