// A mapping of ranks to nodes: the launcher's half of placement.
#pragma once

#include <string>
#include <vector>

#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

struct rank_place {
    int node = 0;  ///< index into the allocation's nodes
    int local_rank = 0;
    bool operator==(rank_place const&) const = default;
};

/// map_policy::slot: ranks are numbered node by node, in the allocation's order. map_policy::node: in rounds, one rank a node
/// that still has room, as mpirun's --map-by node.
struct mapping {
    std::vector<int> ranks_per_node;  ///< one entry a node of the allocation; 0: not used
    map_policy order = map_policy::slot;
    std::string note;  ///< what the user should know about it ("4 ranks on 2 slots …"), or empty

    int world_size() const noexcept;
    int nodes_used() const noexcept;
    int rank_of(int node, int local_rank) const;
    rank_place place_of(int rank) const;
    std::vector<rank_place> places() const;  ///< of all ranks, in order of rank; linear in their number
    bool operator==(mapping const&) const = default;
};

/// Places ranks on nodes. Pure and linear in their number.
/// - Where the GPUs of the nodes are known and there are some, a node takes `ranks_per_gpu` ranks for each; else one a slot.
///   `slots_per_node` replaces both. Nodes that take none are left out. Without `ranks` all room is used.
/// - `ranks` fill one node after the other. With map_policy::node, or with `nodes` (the first so many that take ranks), they are
///   dealt in rounds, so that all nodes are used alike. `ranks_per_node` puts exactly so many on each node used.
/// - More ranks than room is an error. Two exceptions: on this machine alone and without GPUs, `ranks` may exceed the cores, and
///   the note tells; where the GPUs are not known, `ranks` and `ranks_per_node` may exceed the slots (unless a list of hosts
///   gives these), up to the hardware threads of a node if they are known.
/// - Nodes of which some GPUs are known and others not are an error without `slots_per_node`.
/// Throws errc::usage for values that contradict each other, errc::placement with the numbers and what to do.
mapping map_ranks(allocation const& given, placement_request const& wanted);

}  // namespace muster
