// Which node each rank is on: the launcher's half of placement.
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
/// - A node takes one rank a GPU (times `ranks_per_gpu`) where nodes tell their GPUs and there are some, else one a slot;
///   `slots_per_node` stands in for both. Nodes that take none are passed over. Without `ranks` all room is used.
/// - `ranks` are filled in node by node; with map_policy::node, or with `nodes` (the first so many that take ranks), they are
/// dealt
///   in rounds, so that all nodes are used alike. `ranks_per_node` puts exactly so many on each node used.
/// - More ranks than room is an error. Except: on this machine alone and without GPUs `ranks` may exceed the cores, which the
/// note
///   says; and where nobody tells the GPUs, `ranks` and `ranks_per_node` may exceed the slots (unless a list of hosts states
///   these), up to a node's hardware threads if they are known.
/// - Some nodes telling their GPUs and others not is an error without `slots_per_node`.
/// Throws errc::usage for values that contradict each other, errc::placement with the numbers and the way out.
mapping map_ranks(allocation const& given, request const& wanted);

}  // namespace muster
