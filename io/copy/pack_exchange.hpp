// The exchange of packs between nodes: each node reads some, and every node writes all, while others are still read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "comm/communicator.hpp"
#include "io/copy/copy_target.hpp"
#include "io/tree/chunk_plan.hpp"

namespace muster {

struct exchange_work {
    file_list const& list;
    chunk_plan const& plan;
    std::span<pack const> packs;  ///< the same on all ranks of `nodes`
    copy_target& target;
    copy_presence& have;  ///< says which chunks are to be written here; takes the checksums of those
    int threads = 4;
    std::atomic<std::uint64_t>& bytes_written;
    std::atomic<std::uint64_t>& bytes_read;
    std::function<void()> meanwhile;
};

/// Collective over `nodes`, one rank a node. Pack p is read by rank p % size, with its checksums behind its bytes; ranks gather the
/// packs round by round, so that a node's link carries every byte once in at most, and each node's own ones size-1 times out. What
/// arrives is compared with the checksums before it counts as written. A failure on one rank is known to all in its next round:
/// all throw comm_error.
void exchange_packs(communicator& nodes, exchange_work const& work);

}  // namespace muster
