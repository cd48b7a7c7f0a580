// Checks the nodes before ranks start on them.
#pragma once

#include <vector>

#include "launch/preflight/probed_node.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// What was seen of the nodes, and what is wrong with them.
struct node_survey {
    std::vector<probed_node> nodes;
    std::vector<node_finding> findings;
};

/// Inspects `nodes` (indices into the allocation's): from this process where that is this machine alone, else by a probe on each
/// (probe_nodes, and its errors). `run.map` is not read.
node_survey survey_nodes(run_plan const& run, std::vector<int> const& nodes);

/// Whether only the nodes themselves can tell how many ranks they take: several of them, or another one than this, with GPUs that
/// nobody has counted and no number of ranks asked for; or some with GPUs that are counted and some with GPUs that are not.
bool must_ask_nodes(allocation const& given, placement_request const& wanted);

/// Does what --preflight and --exclude-bad-nodes ask for, and what an allocation of unknown GPUs needs: inspects the nodes that
/// ranks would be on (all, where bad ones may be left out), prints what is wrong, and returns the allocation with what was found
/// and without bad nodes. Inspects nothing where none of this is wanted. Throws errc::unavailable naming the bad nodes,
/// errc::placement if too few are left.
allocation check_nodes(run_plan const& run);

}  // namespace muster
