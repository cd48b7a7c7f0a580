// This node: its hardware, what it offers by itself, and whether a name refers to it.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// This machine as this process may use it; `kept` as in discover_topology, whose errors it throws.
topology discover_here(environment const& variables, hwloc_handle* kept = nullptr);

/// What this machine offers by itself: a slot for each GPU, or each core that is not among those that `wanted` reserves.
node node_of(topology const& machine, placement_request const& wanted = {});

/// Whether this process is on that node: by the name up to the first dot, or by a name or address of this machine's own.
bool is_this_host(node const& candidate);

}  // namespace muster
