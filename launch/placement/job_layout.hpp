// Notes on jobs that were requested with another layout than their ranks get.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// Returns notes for a Slurm job that was requested with a number of tasks (-n, --ntasks-per-node) or a distribution (-m). srun
/// would obey these, and muster does not: ranks follow the GPUs, and fill one node after the other. Returns nothing if `wanted`
/// gives the number of ranks, or the nodes. Pure.
std::vector<std::string> notes_on_layout(allocation const& given, placement_request const& wanted, mapping const& map,
                                         environment const& variables);

}  // namespace muster
