// The frame of a program whose ranks work together. Makes the communicator, runs the work and reports agreed failures once.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// Makes the communicator and runs `body(communicator&)`, which returns an exit code. If all ranks agreed on a failure
/// (comm_error), rank 0 prints it in the name of `program`, and the communicator ends in order, which it would not while an
/// exception passes through it. Any other exception passes. Collective.
template <typename Body>
int run_with_ranks(std::string_view program, identity const& who, comm_options const& how, Body&& body) {
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
