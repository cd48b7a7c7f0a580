// The place of a rank on its node, and the variables of its program there, as its shim finds them.
#pragma once

#include <optional>
#include <vector>

#include "base/environment.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

struct shim_placement {
    binding where;
    std::vector<gpu> sampled;         ///< the GPUs that this shim tells of
    std::optional<held_ports> ports;  ///< until the program starts
    wire::ready ready;                ///< all that the launcher is to know of it
};

/// Discovers this node with the shim's `variables`, binds the rank as all of the node's are bound, and holds the ports that it is to
/// serve. `launcher_fd`, of a connection to the launcher, names this node's address unless the job does. Throws error where the node
/// cannot hold the ranks.
shim_placement place_rank(wire::job const& job, environment const& variables, int launcher_fd);

/// What the rank's program is to find in its environment: the job's variables over the shim's own, and those of its place. Pure but
/// for a look at the network's interfaces and at the folders of Python.
environment program_variables(wire::job const& job, wire::go const& go, binding const& where, environment const& shim_variables);

}  // namespace muster
