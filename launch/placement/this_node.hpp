// Both halves of placement where all ranks are on this node, and what this node is.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/binding.hpp"
#include "launch/placement/mapping.hpp"
#include "launch/scheduler/allocation.hpp"
#include "pmix/identity.hpp"

namespace muster {

struct placement {
    topology machine;
    allocation given;
    mapping map;
    std::vector<binding> bindings;  ///< one a rank
    bool operator==(placement const&) const = default;
};

/// This machine as this process may use it. Throws as discover_topology.
topology discover_here(environment const& variables);

/// What this machine offers by itself: a slot for each GPU, or each core.
node node_of(topology const& machine);

/// Whether this process is on that node: by the name up to the first dot, or by a name or address of this machine's own.
bool is_this_host(node const& candidate);

/// The placement of ranks that are all on this node. Pure. Throws errc::placement.
placement place_here(topology machine, allocation given, mapping map, request const& wanted);

/// Who rank `rank` of this placement is, in the job `nspace`.
identity identity_of(placement const& where, int rank, std::string const& nspace);

}  // namespace muster
