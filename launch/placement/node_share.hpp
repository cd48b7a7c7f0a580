// The part of a node that belongs to the job, where other jobs may be on the node too.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

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

/// What the user should know of it, also that the job has GPUs there and none is to be seen; mostly empty. Pure.
std::string share_note(topology const& machine, placement_request const& wanted);

}  // namespace muster
