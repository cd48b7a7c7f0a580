// Counts of the processes that the kernel has killed because memory was full, for telling such a death from others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// Counts since the machine or the cgroup was made; nothing where the kernel does not tell.
struct memory_kills {
    std::optional<long> in_cgroup;  ///< of the memory cgroup that this process is in (`oom_kill`)
    std::optional<long> on_node;    ///< of the whole machine (/proc/vmstat)
    bool operator==(memory_kills const&) const = default;
};

/// What two counts say of a death between them; shm_full: no memory was missed, but /dev/shm has less than least_shm_bytes left.
enum class memory_verdict { unknown, none, on_node, in_cgroup, shm_full };

inline constexpr std::uint64_t least_shm_bytes = std::uint64_t{4} << 20;  ///< what MPI libraries ask for at their start

memory_kills count_memory_kills();
memory_verdict compare(memory_kills const& before, memory_kills const& after) noexcept;

/// What the counts since `before` say of a process that ended with this wait status: it, or a child that it failed by, may have been
/// killed so. One that ended well is not asked about: counting reads four files.
memory_verdict memory_verdict_of(int wait_status, memory_kills const& before);

/// The file that counts for a process with this /proc/PID/cgroup and /proc/PID/mountinfo: memory.oom_control (version 1) or
/// memory.events (version 2). Empty: memory is not accounted for, or not visible. Pure.
std::string find_memory_events(std::string_view cgroup, std::string_view mountinfo);

/// The number behind `key` in lines of "key number".
std::optional<long> find_count(std::string_view text, std::string_view key);

}  // namespace muster
