// Checks the nodes before ranks start on them.
#pragma once

#include <vector>

#include "launch/preflight/probed_node.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Holds what was seen of the nodes, and what is wrong with them.
struct node_survey {
    std::vector<probed_node> nodes;
    std::vector<node_finding> findings;
};

/// Inspects `nodes` (indices into the allocation's): from this process if that is only this machine, else by a probe on each
/// (probe_nodes, and its errors). Does not read `run.map`.
node_survey survey_nodes(run_plan const& run, std::vector<int> const& nodes);

/// Does what --preflight and --exclude-bad-nodes request, and what an allocation of unknown GPUs needs (part_functions).
allocation check_nodes(run_plan const& run, bool unknown);

}  // namespace muster
