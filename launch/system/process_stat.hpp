// Reads what the kernel tells of this machine's processes in /proc/PID/stat.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace muster {

/// Some fields of /proc/PID/stat, by proc(5).
struct process_status {
    char state = '?';
    pid_t parent = 0;
    std::uint64_t flags = 0;       ///< of the kernel: PF_EXITING and others
    std::uint64_t user_ticks = 0;  ///< its processor time, and that of its children that have ended
    std::uint64_t system_ticks = 0;
    std::uint64_t major_faults = 0;  ///< its own, and those of its children that have ended
    std::uint64_t threads = 0;
    std::uint64_t resident_pages = 0;
    std::uint64_t start_ticks = 0;  ///< when it began, since the machine did: with its number it names one process only
    std::uint64_t pending = 0;      ///< signals that it has not taken yet, signal N as bit N-1

    std::uint64_t cpu_ticks() const noexcept { return user_ticks + system_ticks; }
    bool lives() const noexcept { return state != 'Z' && state != 'X'; }
    /// Returns whether the kernel has begun to remove it.
    bool is_exiting() const noexcept { return (flags & 0x4) != 0; }  // PF_EXITING
};

/// Reads the text of such a file; returns nothing for any other text. Pure.
std::optional<process_status> parse_process_stat(std::string_view text);

/// Returns nothing if there is no such process.
std::optional<process_status> read_process_stat(pid_t pid) noexcept;

/// Returns how many ticks a second has.
double ticks_per_s() noexcept;

/// Returns the processes that this one can see, in no order.
std::vector<pid_t> list_processes();

/// Returns the living processes by their parents.
std::map<pid_t, std::vector<pid_t>> living_children();

}  // namespace muster
