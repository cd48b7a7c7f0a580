// Which node each rank is on: the launcher's half of placement.
#pragma once

#include <string>
#include <vector>

#include "launch/allocation.hpp"
#include "launch/request.hpp"

namespace muster {

/// Ranks are numbered node by node, in the allocation's order.
struct mapping {
    std::vector<int> ranks_per_node;
    std::string note;  ///< what the user should know about it ("4 ranks on 2 slots …"), or empty

    int world_size() const noexcept;
    int rank_of(int node, int local_rank) const;
    bool operator==(mapping const&) const = default;
};

/// Places ranks on nodes: one rank a GPU (times `ranks_per_gpu`) where there are GPUs, else one a slot. More ranks than GPUs,
/// than the slots of a fixed allocation or than `slots_per_node` is an error; on this machine alone and without GPUs an explicit
/// number of ranks may exceed the cores, which the note says. Pure. Throws errc::placement with the numbers and the way out.
mapping map_ranks(allocation const& given, request const& wanted);

}  // namespace muster
