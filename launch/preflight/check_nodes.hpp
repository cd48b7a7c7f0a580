// A look at the nodes before ranks start on them.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/preflight/node_findings.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// What was seen of the nodes, and what is wrong with them.
struct node_survey {
    std::vector<probed_node> nodes;
    std::vector<node_finding> findings;
};

/// Looks at `nodes` (indices into the allocation's): itself where that is this machine alone, else by a probe on each
/// (probe_nodes, and its errors).
node_survey survey_nodes(run_options const& options, environment const& inherited, scheduler_sources const& sources,
                         allocation const& given, std::vector<int> const& nodes, std::string const& scratch_dir);

/// The index of every node of the allocation.
std::vector<int> all_nodes(allocation const& given);

/// Whether only the nodes themselves can tell how many ranks they take: several of them, or another one than this, with GPUs that
/// nobody has counted and no number of ranks asked for; or some with GPUs that are counted and some with GPUs that are not.
bool must_ask_nodes(allocation const& given, placement_request const& wanted);

/// What --preflight and --exclude-bad-nodes do, and what an allocation that does not tell its GPUs needs: looks at the nodes that
/// ranks would be on (at all, where bad ones may be left out), prints what is wrong, and returns the allocation with what was
/// learnt and without bad nodes. Looks at nothing where none of this is wanted. Throws errc::unavailable naming the bad nodes,
/// errc::placement if too few are left.
allocation check_nodes(run_options const& options, environment const& inherited, scheduler_sources const& sources,
                       allocation const& given, std::string const& scratch_dir);

}  // namespace muster
