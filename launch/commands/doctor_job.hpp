// muster doctor's look at the job that it finds itself in, and at what can start ranks there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/commands/doctor_command.hpp"
#include "launch/preflight/check_nodes.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Which scheduler's job this is, which engines can start ranks on its nodes, and why others cannot. Asks the engines' programs.
void examine_job(std::vector<finding>& all, run_options const& options, environment const& variables);

/// Looks at every node of the allocation. `options.command` may be empty. Throws what reading the allocation and probing throw.
node_survey survey_allocation(run_options const& options, environment const& variables, std::string const& scratch_dir);

/// How many nodes are unfit for ranks.
int count_bad(node_survey const& survey);

/// A table of the nodes, and below it what is wrong and what to do.
std::string nodes_text(node_survey const& survey);
nlohmann::ordered_json nodes_json(node_survey const& survey);

}  // namespace muster
