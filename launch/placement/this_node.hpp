// This node: its hardware, what it offers by itself, and whether a name refers to it.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// This machine as this process may use it; `kept` as in discover_topology, whose errors it throws.
topology discover_here(environment const& variables, hwloc_handle* kept = nullptr);

/// What this machine offers by itself: a slot for each GPU, or each core that is not among those that `wanted` reserves.
node node_of(topology const& machine, placement_request const& wanted = {});

/// Whether this process is on that node: by the name up to the first dot, or by a name or address of this machine's own.
bool is_this_host(node const& candidate);

// The part of a node that belongs to the job, where other jobs may be on the node too.

/// `wanted` with the job's part of this node as its scheduler counts it. Pure.
placement_request with_share(placement_request wanted, allocation const& given, node const& one);

/// A node's variables with the GPUs that its scheduler says by number, whatever names others: what started this process may have brought
/// another node's along. Pure.
environment with_given_gpus(environment variables, node_part const& share);

/// Whether the job has only some of the GPUs that this process sees, or of the cores that it may run on, and nothing says which.
/// Ranks are then bound to none of them, since any may be another job's; maps and other ways of binding than the usual one are
/// the user's own word. Pure.
bool is_gpu_share_unclear(topology const& machine, placement_request const& wanted);
bool is_core_share_unclear(topology const& machine, placement_request const& wanted);

/// What the user should know of it, also that the job has GPUs there and none is to be seen, or that a quota limits its CPUs; mostly empty. Pure.
std::string share_note(topology const& machine, placement_request const& wanted);

}  // namespace muster
