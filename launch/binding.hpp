// GPU, cores and network card of each rank of a node: the node's half of placement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/request.hpp"
#include "launch/topology.hpp"

namespace muster {

struct binding {
    std::optional<gpu> device;
    cpuset cores;   ///< empty: not bound
    int numa = -1;  ///< the NUMA node of those cores; -1 if several
    std::optional<std::string> nic;
    std::string why;
    bool operator==(binding const&) const = default;
};

/// Places the `local_size` ranks of a node. GPUs go to ranks in order, `ranks_per_gpu` ranks each; with `slots_per_node` given
/// the GPUs go round. Cores: those of the GPU's NUMA node, or all, shared out evenly in whole cores, so that no core serves two
/// ranks while there are enough; else ranks share, which `why` says. Pure. Throws errc::placement with the numbers if a rank
/// would be left without a GPU, or without the `cpus_per_rank` asked for.
std::vector<binding> bind_ranks(topology const& machine, request const& wanted, int local_size);

}  // namespace muster
