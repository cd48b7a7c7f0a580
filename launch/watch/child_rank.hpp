// A rank that is a child of this process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "launch/observe/mpi_use.hpp"
#include "launch/placement/binding.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// One rank of this node, from its start to its end.
struct child_rank {
    identity who;
    binding place;
    pid_t pid = -1;
    std::optional<int> wait_status{};  ///< set once it has ended
    bool connected = false;            ///< initialised PMIx or PMI
    bool finalized = false;
    bool group_gone = false;              ///< no process is left in its group
    bool spoke = false;                   ///< has written something
    rank_stream* last_written = nullptr;  ///< the stream that it wrote to last
    std::chrono::steady_clock::time_point last_output{};
    mpi_sight mpi{};  ///< of the last look
    std::chrono::steady_clock::time_point looked_at{};
    rank_stream out;
    rank_stream err;

    bool running() const noexcept { return pid > 0 && !wait_status; }
};

/// "rank 3 on node2 (GPU 1, GPU-3f2a…)": how every message names a rank.
inline std::string name_of(child_rank const& rank) {
    auto const& gpu = rank.place.device;
    return name_of_rank(rank.who.rank, rank.who.host, gpu ? gpu->index : -1, gpu ? gpu->uuid : "");
}

}  // namespace muster
