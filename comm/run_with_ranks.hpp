// Work that the ranks of this program do together.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// Makes the communicator and runs `body(communicator&)`, which returns an exit code. A failure that all ranks agreed on
/// (comm_error) is told by rank 0 in the name of `program`, and the communicator ends in order, which it would not while an
/// exception passes through it. Any other exception passes. Collective.
template <typename Body>
int with_ranks(std::string_view program, identity const& who, comm_options const& how, Body&& body) {
    communicator ranks = communicator::create(who, how);
    try {
        return std::forward<Body>(body)(ranks);
    } catch (comm_error const& e) {
        if (e.code() == errc::timeout || e.code() == errc::peer_failed) throw;  // not agreed: others may be gone
        if (ranks.rank() == 0) fmt::print(stderr, "{}: error: {}\n", program, e.what());
        return exit_code(e.code());
    }
}

}  // namespace muster
