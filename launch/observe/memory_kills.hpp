// Counts the processes that the kernel has killed because memory was full, to distinguish such deaths from others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launch/system/cgroup.hpp"

namespace muster {

/// Counts since the machine or the cgroup was created; nothing if the kernel does not report them.
struct memory_kills {
    std::optional<long> in_cgroup;  ///< in the memory cgroup of this process (`oom_kill`)
    std::optional<long> on_node;    ///< on the whole machine (/proc/vmstat)
    bool unlimited = false;         ///< neither that cgroup nor a visible one above it has a limit: it is never full
    std::optional<long>
        limit_hits{};  ///< how often it, or a visible one above it, was full: `oom` of memory.events (v2), memory.failcnt (v1)
    bool hidden_above =
        false;  ///< there are cgroups above that are not visible, as in a container: one of them may have been full
    bool operator==(memory_kills const&) const = default;
};

/// The meaning of two counts for a death between them. shm_full: memory was sufficient, but /dev/shm has less than
/// least_shm_bytes left; either: memory of the machine or of a cgroup.
enum class memory_verdict { unknown, none, on_node, in_cgroup, shm_full, either };

inline constexpr std::uint64_t least_shm_bytes = std::uint64_t{4} << 20;  ///< what MPI libraries need at their start

memory_kills count_memory_kills();
memory_verdict compare(memory_kills const& before, memory_kills const& after) noexcept;

/// Returns what the counts since `before` mean for a process with this wait status: the kernel may have killed it, or a child
/// whose death made it fail. Reads nothing for one that ended well, since counting reads four files.
memory_verdict memory_verdict_of(int wait_status, memory_kills const& before);

/// Returns the file that counts for a process with this /proc/PID/cgroup and /proc/PID/mountinfo: memory.oom_control (version 1)
/// or memory.events (version 2). Empty: memory is not accounted for, or not visible. Pure.
std::string find_memory_events(std::string_view cgroup, std::string_view mountinfo);

/// Returns whether a memory cgroup or one above it has a limit, by memory.max (version 2) or memory.limit_in_bytes (version 1);
/// also true if no such file is readable. `read` returns a file's text, "" if it is missing. Pure.
bool has_memory_limit(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

/// Returns how often the cgroup and those above it were full, in total; nothing if no file says. Pure.
std::optional<long> count_limit_hits(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

/// Returns whether the topmost visible cgroup is below others. Pure.
bool has_hidden_cgroups(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

}  // namespace muster
