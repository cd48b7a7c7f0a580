// Blame messages over MPI: sent by a rank that gives up, received by the others.
#pragma once

#include <vector>

#include "comm/backend/blame_message.hpp"
#include "comm/mpi/mpi_messages.hpp"

namespace muster::detail {

/// Sends these to all ranks that are not dead, and waits for nothing (the buffer stays allocated until the process ends). Errors
/// are dropped.
void send_blame(direct_world const& world, std::vector<late_rank> const& late) noexcept;

/// The blame of the first rank whose message has arrived; empty if there is none.
std::vector<late_rank> receive_blame(direct_world const& world);

}  // namespace muster::detail
