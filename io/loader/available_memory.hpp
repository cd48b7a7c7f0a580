// Memory that this process may still take: finds the limit of its control group and what the machine has left.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct memory_room {
    std::uint64_t bytes = 0;
    std::string by;  ///< what sets it: "limit of the control group /slurm/job_7", "the machine"
};

/// The smallest of MemAvailable and, for this process' memory control group and each above it, limit minus use (version 2:
/// memory.max - memory.current; version 1: memory.limit_in_bytes - memory.usage_in_bytes), where file pages that the kernel can
/// drop (inactive_file) do not count as used. What cannot be read sets no limit. `root` stands before /proc and /sys (for tests).
memory_room available_memory(std::string const& root = {});

}  // namespace muster
