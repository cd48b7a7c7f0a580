// Binds the ranks of a node: chooses GPU, cores and NIC of each. This is the node's half of placement.
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
    std::string visible_devices;  ///< what the rank's CUDA_VISIBLE_DEVICES (or its vendor's variable) becomes; empty: as it is
    int device_index = 0;         ///< what its program calls its GPU, the others that it sees counted
    int threads = 1;              ///< of one that is not bound: how many it should run
    bool operator==(binding const&) const = default;
};

/// Places the `local_size` ranks of a node; each row's `why` says what led to it. Pure.
///
/// GPUs go to ranks in order, `ranks_per_gpu` ranks each, or as `gpu_map` says; with `slots_per_node` given the GPUs go round.
/// Cores: an equal part, in whole cores, of those next to the rank's GPU (as `gpu_cpus`, else the kernel, says), or of all where
/// that is not known; what `bind_to`, `cpus_per_rank` or `cpu_map` says instead. A core of which a hardware thread is in
/// `reserved_cpus` serves no rank; without `smt` a rank gets the first thread of each of its cores. No core serves two ranks
/// while another is free, unless bind_to numa, socket, gpu or a cpu_map asks for it.
///
/// Throws errc::placement with the numbers if a rank would be left without a GPU, without the `cpus_per_rank` asked for, or if a
/// map does not fit the node; errc::usage if `cpus_per_rank` and `bind_to` contradict each other.
std::vector<binding> bind_ranks(topology const& machine, placement_request const& wanted, int local_size);

/// What the user should know about how a node's ranks are bound, a line each: ranks that share GPUs or cores.
std::vector<std::string> binding_notes(topology const& machine, placement_request const& wanted,
                                       std::vector<binding> const& ranks);

// The placement of ranks that are all on this node: both halves in one value.

struct local_placement {
    topology machine;
    allocation given;
    mapping map;
    std::vector<binding> bindings;     ///< one a rank
    std::vector<binding> spares = {};  ///< of processes that wait for the place of one
    bool operator==(local_placement const&) const = default;
};

/// The placement of ranks that are all on this node. Pure. Throws errc::placement.
local_placement place_here(topology machine, allocation given, mapping map, placement_request const& wanted);

}  // namespace muster
