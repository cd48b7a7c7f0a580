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

/// Returns whether only the nodes themselves can say how many ranks they take: several nodes, or another one than this, with GPUs
/// that nobody has counted and no requested number of ranks; or some with counted GPUs and some with uncounted ones.
bool must_ask_nodes(allocation const& given, placement_request const& wanted);

/// Does what --preflight and --exclude-bad-nodes request, and what an allocation of unknown GPUs needs: inspects the nodes that
/// ranks would be on (all, if bad ones may be left out), prints what is wrong, and returns the allocation with what was found and
/// without bad nodes. Inspects nothing if none of this is wanted. Throws errc::unavailable naming the bad nodes, errc::placement
/// if too few are left.
allocation check_nodes(run_plan const& run);

}  // namespace muster
