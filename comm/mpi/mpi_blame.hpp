// How last words travel over MPI.
#pragma once

#include <vector>

#include "comm/backend/blame_message.hpp"
#include "comm/mpi/mpi_messages.hpp"

namespace muster::detail {

/// Sends these (the buffer stays allocated until the process ends) to all ranks that are not dead, and forgets about it. Errors
/// are dropped.
void say_last_words(direct_world const& world, std::vector<late_rank> const& late) noexcept;

/// Of the first rank whose last words have arrived; empty if there are none.
std::vector<late_rank> hear_last_words(direct_world const& world);

}  // namespace muster::detail
