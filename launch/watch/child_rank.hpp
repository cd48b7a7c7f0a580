// A rank that is a child of this process.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "launch/observe/mpi_use.hpp"
#include "launch/placement/binding.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// One rank of this node: its process and its output; evidence::ranks has what that says of the rank.
struct child_rank {
    identity who;
    binding place;
    pid_t pid = -1;
    bool group_gone = false;              ///< no process is left in its group
    bool spoke = false;                   ///< has written something
    rank_stream* last_written = nullptr;  ///< the stream that it wrote to last
    std::chrono::steady_clock::time_point last_output{};
    mpi_sight mpi{};  ///< of the last look
    std::chrono::steady_clock::time_point looked_at{};
    rank_stream out;
    rank_stream err;
};

}  // namespace muster
