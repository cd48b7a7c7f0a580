// The placement of ranks that are all on this node: both halves in one value.
#pragma once

#include <vector>

#include "launch/hardware/topology.hpp"
#include "launch/placement/binding.hpp"
#include "launch/placement/mapping.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

struct local_placement {
    topology machine;
    allocation given;
    mapping map;
    std::vector<binding> bindings;  ///< one a rank
    bool operator==(local_placement const&) const = default;
};

/// The placement of ranks that are all on this node. Pure. Throws errc::placement.
local_placement place_here(topology machine, allocation given, mapping map, placement_request const& wanted);

}  // namespace muster
