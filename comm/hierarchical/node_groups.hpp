// The groups of ranks, on a node and across nodes, in which a reduction over several nodes goes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace muster {

/// The place of a rank, from its identity. Sent among ranks as bytes.
struct node_place {
    int node_rank = 0;
    int local_rank = 0;
};

/// The groups that a rank belongs to, in ranks of the world.
struct node_groups {
    std::vector<int> local;   ///< those of its node, by their local ranks
    std::vector<int> across;  ///< those with its own local place on every node, by their nodes
    int local_place = 0;      ///< its own index in `local`
    int node_place = 0;       ///< its own index in `across`
    std::string refusal;      ///< why steps are of no use, the rest being empty then: the same on all ranks; else ""
};

/// Pure. `places` of every rank; `rank` lies among them. Refused: one node, one rank on each node, different numbers of ranks on
/// the nodes, two ranks in one place.
node_groups group_by_node(std::span<node_place const> places, int rank);

}  // namespace muster
