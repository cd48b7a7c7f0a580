// The message of a rank that gives up. Tells the others whom it blames, so that all blame the same rank. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/collective_backend.hpp"

namespace muster::detail {

/// "3 process 4711 is stopped" in a line each; cut to 1 KiB, which one message without a handshake holds.
std::string write_blame(std::vector<late_rank> const& late);

/// The reverse; lines of another form, and ranks outside a world of `size`, are left out. All are taken for dead, since the
/// sender, without which nothing goes on, gave them up. `sender` ("rank 1 on n0") goes into the reason.
std::vector<late_rank> read_blame(std::string_view text, std::string_view sender, int size);

}  // namespace muster::detail
