// Inspects nodes from the launcher, by a probe on each.
#pragma once

#include <functional>
#include <vector>

#include "launch/preflight/probed_node.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Says which of the nodes rank 0 would be on, as far as is known; -1: on none.
using choose_first = std::function<int(std::vector<probed_node> const& nodes)>;

/// Starts a probe on each of `nodes` (indices into the allocation's), all at once through the engine that the ranks would have,
/// and returns what they say, in the same order. When the engine brings up some or none, those that are missing are tried one by
/// one, so that a single dead node does not hide the others. Nodes that do not answer within some seconds come without a report
/// and with what the engine printed. Then all that answered connect to the node that `first` chooses. `run.options.command` may be
/// empty. Throws errc::unavailable if no engine can be used, program_error if it cannot be started.
std::vector<probed_node> probe_nodes(run_context const& run, std::vector<int> const& nodes, choose_first const& first);

}  // namespace muster
