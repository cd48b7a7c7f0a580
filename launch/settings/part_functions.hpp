// The functions of the parts in a build, which the core calls through one table.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// A command of `muster` that is a function of the program: it takes the words after the command's name, and the environment of the
/// process; it returns the exit code and throws muster::error.
struct command_function {
    std::string_view name;
    int (*run)(std::vector<std::string> const& args, environment const& variables);
};

/// Keeps the states that ranks commit, from before the first launcher to the end of the run (--keep-state; part keep). The guardian
/// makes it; each launcher inherits it.
class state_keeping {
  public:
    virtual ~state_keeping() = default;

    /// Returns the process that leads the keepers of the nodes, or 0. It outlives the launcher.
    virtual pid_t leader() const noexcept = 0;
    /// Makes the states that ranks keep, if any, ready on their nodes, and returns where they are. `everywhere`: the run's nodes,
    /// including idle ones; `elsewhere`: at least one is another node than this. Call before any thread starts. Throws errc::unavailable.
    virtual kept_places make_ready(run_plan const& run, allocation const& everywhere, bool elsewhere) = 0;
    /// Waits, for the guardian at the end, for a moment until keepers and leader have ended.
    virtual void end() noexcept = 0;
};

/// Holds what `muster doctor --allocation` prints about the nodes of a job.
struct examined_nodes {
    std::string text;  ///< a table, and the findings with what to do
    std::string json;  ///< an array, of the schema muster.doctor/1
    int bad = 0;       ///< nodes that are unfit for ranks
};

/// Each part in the build fills in what is its own; the rest is null.
struct part_functions {
    std::vector<command_function> commands;

    /// Throws errc::system. Part keep.
    std::unique_ptr<state_keeping> (*keep_states)() = nullptr;
    /// Inspects the nodes that ranks would be on (all with --exclude-bad-nodes, or if `unknown`: only they can say how many ranks they
    /// take), prints what is wrong, and returns the allocation with what was found and without bad nodes. Throws errc::unavailable
    /// naming the bad nodes, errc::placement if too few are left. Part preflight.
    allocation (*check_nodes)(run_plan const& run, bool unknown) = nullptr;
    /// Examines every node of the allocation. `options.command` may be empty. `most_width`: of the table; 0: any. Throws the errors of
    /// reading the allocation and of probing. Part preflight.
    examined_nodes (*examine_nodes)(run_options const& options, environment const& variables, std::string const& scratch_dir,
                                    std::size_t most_width) = nullptr;
};

/// Returns those of this build; cmake/muster_parts.cmake writes it.
part_functions functions_of_parts();

}  // namespace muster
