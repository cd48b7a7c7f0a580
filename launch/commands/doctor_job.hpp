// The job of muster doctor: examines the scheduler, the engines and, on request, every node.
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

/// Which scheduler's job this is, which engines can start ranks on its nodes, and why others cannot. Asks the engines' programs. Returns
/// the GPUs that the job has on this node, where the scheduler says it.
std::optional<int> examine_job(std::vector<finding>& all, run_options const& options, environment const& variables);

/// Examines every node of the allocation. `options.command` may be empty. Throws what reading the allocation and probing throw.
node_survey survey_allocation(run_options const& options, environment const& variables, std::string const& scratch_dir);

/// How many nodes are unfit for ranks.
int count_bad(node_survey const& survey);

/// A table of the nodes, as text_table makes it, and below it the findings with what to do.
std::string nodes_text(node_survey const& survey, std::size_t most_width = 0);
nlohmann::ordered_json nodes_json(node_survey const& survey);

}  // namespace muster
