// Messages over MPI of a rank that gives up to the others: whom it blames, and that it is through.
#pragma once

#include <vector>

#include "comm/backend/late_ranks.hpp"
#include "comm/mpi/mpi_messages.hpp"

namespace muster::detail {

/// Sends these to all ranks that are not dead, and waits for nothing (the buffer stays allocated until the process ends). Errors
/// are dropped.
void send_blame(direct_world const& world, std::vector<late_rank> const& late) noexcept;

/// Tells all other ranks that everything has arrived that this one has sent. Waits for nothing. Errors are dropped.
void tell_through(direct_world const& world) noexcept;

/// The blame of the first rank whose message has arrived; empty if none has.
std::vector<late_rank> receive_blame(direct_world const& world);

}  // namespace muster::detail
