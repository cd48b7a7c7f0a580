// Looks at nodes from the launcher, by a probe on each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/run_options.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

/// Says which of the nodes rank 0 would be on, as far as is known; -1: on none.
using choose_first = std::function<int(std::vector<probed_node> const& nodes)>;

/// Starts a probe on each of `nodes` (indices into the allocation's), all at once through the engine that the ranks would have,
/// and returns what they say, in the same order. When the engine brings up some or none, those that are missing are tried one by
/// one, so that a single dead node does not hide the others. Nodes that do not answer within some seconds come without a report
/// and with the engine's word. Then all that answered connect to the node that `first` chooses. `options.command` may be empty.
/// Throws errc::unavailable if no engine can be used, program_error if it cannot be started.
std::vector<probed_node> probe_nodes(run_options const& options, environment const& inherited, scheduler_sources const& sources,
                                     allocation const& given, std::vector<int> const& nodes, std::string const& scratch_dir,
                                     choose_first const& first);

}  // namespace muster
