// The ranks that keep others waiting: found by their processes, and described in one manner in all messages.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/processes/process_watch.hpp"

namespace muster {

/// The ranks, by their place in `processes`, whose processes are gone or stopped, as far as they can be seen from this node.
/// Rank `own` is left out. Reads /proc.
std::vector<late_rank> lost_ranks(std::span<process_name const> processes, int own);

/// "rank 3 on n2 (process 4711 is stopped), rank 5 on n3 (…)"; "" for none. `hosts` of all ranks, by rank. Pure.
std::string describe_late(std::span<late_rank const> late, std::span<std::string const> hosts);

/// For comm_error::culprits(). Pure.
std::vector<int> ranks_of(std::span<late_rank const> late);

}  // namespace muster
