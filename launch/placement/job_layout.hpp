// Notes on jobs that were asked for in another layout than their ranks get.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// For the user of a Slurm job that was asked for with a number of tasks (-n, --ntasks-per-node) or a distribution (-m) which srun would obey, and muster does
/// not: ranks follow the GPUs, and fill one node after the other. Nothing where `wanted` says how many ranks, or on which nodes. Pure.
std::vector<std::string> notes_on_layout(allocation const& given, placement_request const& wanted, mapping const& map,
                                         environment const& variables);

}  // namespace muster
