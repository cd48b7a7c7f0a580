// The frame of commands that work once on every node: one rank of a node does the work, the others wait.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.hpp"
#include "pmix/identity.hpp"

namespace muster::stage {

/// Runs `body(nodes)` on the first rank of every node, `nodes` being the communicator of these ranks, and returns its exit code,
/// which is the same on all ranks. The other ranks wait without using their processors. Collective.
int on_nodes(identity const& who, std::function<int(communicator& nodes)> const& body);

/// Sum of a number of every rank.
std::uint64_t sum_of(communicator& nodes, std::uint64_t mine);

}  // namespace muster::stage
