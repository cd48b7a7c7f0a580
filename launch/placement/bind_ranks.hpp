// Binds the ranks of a node: chooses GPU, cores and NIC of each. This is the node's half of the placement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cpuset.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// The GPU, cores and NIC of a rank.
struct binding {
    std::optional<gpu> device;
    cpuset cores;                    ///< empty: not bound
    int numa = -1;                   ///< the NUMA node of those cores; -1 if several
    std::optional<std::string> nic;  ///< the network interface nearest to the GPU, or to the cores
    std::string why;
    std::string visible_devices;  ///< the value of the rank's CUDA_VISIBLE_DEVICES (or its vendor's variable); empty: unchanged
    int device_index = 0;         ///< its program's number for its GPU, among all that it sees
    int threads = 1;              ///< for a rank that is not bound: how many it should run
    bool operator==(binding const&) const = default;
};

/// Places the `local_size` ranks of a node; each row's `why` gives the reasons. Pure.
///
/// GPUs go to ranks in order, `ranks_per_gpu` ranks each, or as `gpu_map` says; with `slots_per_node` they are assigned in turn.
/// Cores: an equal part, in whole cores, of those next to the rank's GPU (according to `gpu_cpus`, else the kernel), or of all if
/// that is not known; unless `bind_to`, `cpus_per_rank` or `cpu_map` says otherwise. No rank gets a core with a hardware thread
/// in `reserved_cpus`; without `smt` a rank gets the first thread of each of its cores. Ranks share no core while another is
/// free, unless bind_to numa, socket, gpu or a cpu_map asks for it.
///
/// Throws errc::placement with the numbers if a rank would have no GPU or fewer cores than `cpus_per_rank`, or if a map does not
/// fit the node; errc::usage if `cpus_per_rank` and `bind_to` contradict each other.
std::vector<binding> bind_ranks(topology const& machine, placement_request const& wanted, int local_size);

/// Returns what the user should know about the binding of a node's ranks, a line each: ranks that share GPUs or cores.
std::vector<std::string> binding_notes(topology const& machine, placement_request const& wanted,
                                       std::vector<binding> const& ranks);

// The placement of ranks that are all on this node: both halves in one value.

struct local_placement {
    topology machine;
    allocation given;
    mapping map;
    std::vector<binding> bindings;     ///< one for each rank
    std::vector<binding> spares = {};  ///< those of processes that wait for a rank's place
    bool operator==(local_placement const&) const = default;
};

/// Places ranks that are all on this node. Pure. Throws errc::placement.
local_placement place_here(topology machine, allocation given, mapping map, placement_request const& wanted);

}  // namespace muster
