// Work that the ranks of this program do together.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "comm/comm_error.hpp"
#include "comm/communicator.hpp"

namespace muster::stage {

/// Runs `body(communicator&)`, which returns an exit code. A failure that all ranks agreed on is told by rank 0, and the
/// communicator ends in order, which it would not while an exception passes through it.
template <typename Body>
int with_ranks(identity const& who, Body&& body) {
    communicator ranks = communicator::create(who);
    try {
        return std::forward<Body>(body)(ranks);
    } catch (comm_error const& e) {
        if (e.code() == errc::timeout || e.code() == errc::peer_failed) throw;  // not agreed: others may be gone
        if (ranks.rank() == 0) fmt::print(stderr, "muster-stage: error: {}\n", e.what());
        return exit_code(e.code());
    }
}

}  // namespace muster::stage
