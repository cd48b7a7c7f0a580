// The sources that readers of schedulers use (files, commands, variables), and the user's choice among schedulers.
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

/// All that a reader may use: plain functions, so that captured answers can replace a cluster.
struct scheduler_sources {
    environment const& variables;
    std::function<std::optional<std::string>(std::string const& path)> read_file;  ///< nothing: there is no such file
    std::function<command_output(std::vector<std::string> const& argv)> run_command;
    std::function<node()> this_node;  ///< what this machine alone offers; takes a search of its hardware
    std::function<void(std::string const&)> tell = [](std::string const&) {};  ///< what the user should know of an answer
};

/// The real ones. Commands are killed after `command_limit`; their standard input is empty. `variables` must outlive the result.
scheduler_sources real_sources(environment const& variables, std::function<node()> this_node);

/// The same, which tell of a question that got no answer, since a guess then takes the answer's place; of a program that is not
/// there, nothing. A command that was run once is not run again: schedulers' programs take 10 ms each and print the same.
scheduler_sources telling_sources(scheduler_sources sources, std::function<void(std::string const&)> tell);

/// Tells that the command's answer does not say what it was asked.
void tell_of_no_answer(scheduler_sources const& sources, std::vector<std::string> const& argv, std::string_view why);

/// The first line that a command printed, to errors first.
std::string first_line(command_output const& said);

/// What the user says about where the nodes come from; all empty: muster finds out.
struct allocation_choice {
    std::optional<scheduler_kind> scheduler;  ///< --scheduler
    std::string hostfile;                     ///< --hostfile
    std::string hosts;                        ///< -H: "a:4,b:4", or a hostlist "node[1-4]:4"
    std::optional<int> gpus_of_each;          ///< of every node, where a site says it and gives out whole nodes
    bool operator==(allocation_choice const&) const = default;
};

}  // namespace muster
