// Counts of the processes that the kernel has killed because memory was full, for telling such a death from others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launch/system/cgroup.hpp"

namespace muster {

/// Counts since the machine or the cgroup was made; nothing where the kernel does not tell.
struct memory_kills {
    std::optional<long> in_cgroup;  ///< of the memory cgroup that this process is in (`oom_kill`)
    std::optional<long> on_node;    ///< of the whole machine (/proc/vmstat)
    bool unlimited = false;         ///< neither that cgroup nor one above it that can be seen has a limit: it is never full
    std::optional<long>
        limit_hits{};  ///< how often it, or one above it that can be seen, was full: `oom` of memory.events (version 2), memory.failcnt (version 1)
    bool hidden_above =
        false;  ///< there are cgroups above that cannot be seen, as in a container: one of them may have been full
    bool operator==(memory_kills const&) const = default;
};

/// What two counts say of a death between them; shm_full: no memory was missed, but /dev/shm has less than least_shm_bytes left.
/// either: memory of the machine or of a cgroup.
enum class memory_verdict { unknown, none, on_node, in_cgroup, shm_full, either };

inline constexpr std::uint64_t least_shm_bytes = std::uint64_t{4} << 20;  ///< what MPI libraries ask for at their start

memory_kills count_memory_kills();
memory_verdict compare(memory_kills const& before, memory_kills const& after) noexcept;

/// What the counts since `before` say of a process that ended with this wait status: it, or a child that it failed by, may have been
/// killed so. One that ended well is not asked about: counting reads four files.
memory_verdict memory_verdict_of(int wait_status, memory_kills const& before);

/// The file that counts for a process with this /proc/PID/cgroup and /proc/PID/mountinfo: memory.oom_control (version 1) or
/// memory.events (version 2). Empty: memory is not accounted for, or not visible. Pure.
std::string find_memory_events(std::string_view cgroup, std::string_view mountinfo);

/// Whether a memory cgroup or one above it has a limit, by memory.max (version 2) or memory.limit_in_bytes (version 1); also true where no such file
/// can be read. `read` gives a file's text, "" for none. Pure.
bool has_memory_limit(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

/// How often the cgroup and those above it were full, together; nothing where no file tells. Pure.
std::optional<long> count_limit_hits(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

/// Whether the topmost cgroup that can be seen is below others. Pure.
bool has_hidden_cgroups(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

/// The number behind `key` in lines of "key number".
std::optional<long> find_count(std::string_view text, std::string_view key);

}  // namespace muster
