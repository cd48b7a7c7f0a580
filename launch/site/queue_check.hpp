// The queue of a planned job: checks it against what the site file knows of it.
#pragma once

#include <string>
#include <vector>

#include "launch/site/script_plan.hpp"

namespace muster {

/// "1 node", "2 nodes". Pure.
std::string nodes_text(int nodes);

/// Takes request.queue, nodes, ranks_per_node and walltime; sets what the queue says of `select`. A limit that is not known is reported
/// in `notes`, never taken for one that holds. Pure. Throws errc::usage, with the queues that would fit, for a queue that is missing
/// or unknown to a site that names its queues, and for a job outside of its limits (unless options.check_limits is false).
void plan_queue(site const& where, script_request& request, script_options const& options, std::vector<std::string>& notes);

}  // namespace muster
