// The sources of readers of schedulers (files, commands, variables), and the user's choice among schedulers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/process/run_captured.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// Holds all that a reader may use: plain functions, so that captured answers can replace a cluster.
struct scheduler_sources {
    environment const& variables;
    std::function<std::optional<std::string>(std::string const& path)> read_file;  ///< nothing: there is no such file
    std::function<command_output(std::vector<std::string> const& argv)> run_command;
    std::function<node()> this_node;  ///< what this machine alone offers; searches its hardware
    std::function<void(std::string const&)> tell = [](std::string const&) {};  ///< what the user should know about an answer
};

/// Returns the real sources. Kills commands after `command_limit`; their standard input is empty. `variables` must outlive the
/// result.
scheduler_sources real_sources(environment const& variables, std::function<node()> this_node);

/// Does the same, and reports a question without an answer, since a guess then replaces the answer, but no missing program. Runs
/// each command only once: schedulers' programs take 10 ms each and print the same again.
scheduler_sources telling_sources(scheduler_sources sources, std::function<void(std::string const&)> tell);

/// Reports that the command's answer lacks the requested information.
void tell_of_no_answer(scheduler_sources const& sources, std::vector<std::string> const& argv, std::string_view why);

/// Returns the first line that a command printed, from standard error first.
std::string first_line(command_output const& said);

/// Holds the user's choice of where the nodes come from; all empty: muster finds out.
struct allocation_choice {
    std::optional<scheduler_kind> scheduler;  ///< --scheduler
    std::string hostfile;                     ///< --hostfile
    std::string hosts;                        ///< -H: "a:4,b:4", or a hostlist "node[1-4]:4"
    std::optional<int> gpus_of_each;          ///< the GPUs of every node, if a site defines them and allocates whole nodes
    bool operator==(allocation_choice const&) const = default;
};

}  // namespace muster
