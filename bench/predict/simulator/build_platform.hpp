// The builder of a platform in SimGrid. Makes a host of each rank and the links between them.
#pragma once

#include <simgrid/s4u.hpp>
#include <vector>

#include "bench/predict/platform_model.hpp"

namespace muster {

/// The hosts of the ranks, in their order; the first ranks_a_node of them are on the first node.
std::vector<simgrid::s4u::Host*> build_platform(simgrid::s4u::Engine& engine, platform_model const& model, int ranks);

}  // namespace muster
