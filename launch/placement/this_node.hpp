// Describes this node: its hardware, what it offers by itself, and whether a name refers to it.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// Returns this machine as this process may use it; `kept` as in discover_topology, whose errors it throws.
topology discover_here(environment const& variables, hwloc_handle* kept = nullptr);

/// Returns what this machine offers by itself: a slot for each GPU, or for each core that `wanted` does not reserve.
node node_of(topology const& machine, placement_request const& wanted = {});

/// Returns whether this process is on that node: by the name up to the first dot, or by one of this machine's names or addresses.
bool is_this_host(node const& candidate);

// The part of a node that belongs to the job, if other jobs may be on the node, too.

/// Returns `wanted` with the job's part of this node as its scheduler counts it. Pure.
placement_request with_share(placement_request wanted, allocation const& given, node const& one);

/// Returns a node's variables with the GPUs that its scheduler gives by number, whatever names others: what started this process
/// may have passed on another node's. Pure.
environment with_given_gpus(environment variables, node_part const& share);

/// Returns whether the job has only some of the GPUs that this process sees, or of the cores that it may run on, and nothing says
/// which. Ranks are then bound to none of them, since any may belong to another job; the user's maps and ways of binding other
/// than the default still apply. Pure.
bool is_gpu_share_unclear(topology const& machine, placement_request const& wanted);
bool is_core_share_unclear(topology const& machine, placement_request const& wanted);

/// Returns the GPUs of a node that belong to the job: all that the node shows or, if some may belong to another job, only those of
/// ranks. NVIDIA only. Pure.
std::vector<gpu> gpus_to_sample(topology const& machine, std::vector<binding> const& ranks, bool only_of_ranks);

/// Returns what the user should know about it, including that the job has GPUs there and none is visible, or that a quota limits
/// its CPUs; mostly empty. Pure.
std::string share_note(topology const& machine, placement_request const& wanted);

}  // namespace muster
