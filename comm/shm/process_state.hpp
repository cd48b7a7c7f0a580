// Whether another process of this machine still lives: what tells a dead or stopped rank from a slow one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::shm {

/// A process, told from later ones that got its number by the time of its start.
struct process {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;  ///< clock ticks since the machine came up; 0 where /proc does not tell
    bool operator==(process const&) const = default;
};

enum class process_state {
    running,  ///< or sleeping
    stopped,  ///< by a signal or a debugger
    gone,     ///< ended, or ended and not yet waited for
    unknown,  ///< this machine does not tell
};

/// What matters of a line of /proc/PID/stat (proc(5)).
struct stat_line {
    char state = '?';
    std::uint64_t start_ticks = 0;
    bool operator==(stat_line const&) const = default;
};

/// Pure. Nothing if the text is no such line. The program's name within may hold blanks and brackets.
std::optional<stat_line> parse_stat(std::string_view text) noexcept;

/// This process.
process own_process() noexcept;

/// Reads /proc; thread safe.
process_state look_at(process const& whom) noexcept;

/// "is gone", "is stopped", "is running", "cannot be looked at".
std::string_view describe(process_state state) noexcept;

}  // namespace muster::shm
