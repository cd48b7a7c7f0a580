// The choice of a loader's memory mode: follows from the machine, the file, the sampler and the ranks.
#pragma once

#include <cstdint>
#include <string>

#include "io/loader/loader.hpp"

namespace muster {

// Memory that this process may still take: finds the limit of its control group and what the machine has left.

struct memory_room {
    std::uint64_t bytes = 0;
    std::string by;  ///< what sets it: "limit of the control group /slurm/job_7", "the machine"
};

/// The smallest of MemAvailable and, for this process' memory control group and each above it, limit minus use (version 2:
/// memory.max - memory.current; version 1: memory.limit_in_bytes - memory.usage_in_bytes), where file pages that the kernel can
/// drop (inactive_file) do not count as used. What cannot be read sets no limit. `root` stands before /proc and /sys (for tests).
memory_room available_memory(std::string const& root = {});

/// Holds what decides about the memory mode; with several ranks the worst of all of them.
struct memory_circumstances {
    bool mappable = false;  ///< the file is contiguous
    bool windowed = false;  ///< the sampler has a window, and the file can be read by chunks
    bool sharded = false;   ///< the sampler draws from this rank's shard
    bool together = false;  ///< several ranks of this node can share memory
    bool fits = false;
};

/// Chooses the mode where nothing was asked for. Pure.
memory_mode choose_memory(memory_circumstances const& now);

/// Checks whether these options go with the dataset and the sampler; `together`: the loader has a communicator. Throws errc::usage, or
/// errc::unavailable where the file cannot be read in the mode that was asked for.
void check_options(dataset const& from, sampler const& order, loader_options const& options, bool together);

}  // namespace muster
