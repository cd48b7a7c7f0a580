// Examines, for muster doctor, the scheduler, the engines and, on request, every node of the job.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/commands/commands.hpp"
#include "launch/preflight/check_nodes.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Examines which scheduler's job this is, which engines can start ranks on its nodes, and why others cannot. Runs the engines'
/// programs. Returns the GPUs that the job has on this node, if the scheduler says.
std::optional<int> examine_job(std::vector<finding>& all, run_options const& options, environment const& variables);

/// Examines every node of the allocation. `options.command` may be empty. Throws the errors of reading the allocation and of
/// probing.
node_survey survey_allocation(run_options const& options, environment const& variables, std::string const& scratch_dir);

/// Returns how many nodes are unfit for ranks.
int count_bad(node_survey const& survey);

/// Returns a table of the nodes, in text_table's form, followed by the findings with what to do.
std::string nodes_text(node_survey const& survey, std::size_t most_width = 0);
nlohmann::ordered_json nodes_json(node_survey const& survey);

}  // namespace muster
