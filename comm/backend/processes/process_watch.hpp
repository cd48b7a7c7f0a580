// The state of another process of this machine: running, stopped or gone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// A process, distinguished from later ones with its number. Sent among ranks as bytes: no pointers.
struct process_name {
    std::int32_t pid = 0;
    std::uint64_t started = 0;  ///< clock ticks after the machine's start
    std::uint64_t machine = 0;  ///< identifies this boot of this machine and this PID namespace; 0 if unknown
    bool operator==(process_name const&) const = default;
};

/// Returns this process. Reads /proc once.
process_name this_process() noexcept;

enum class process_state : std::uint8_t {
    running,  ///< or sleeping
    stopped,  ///< by a signal or a debugger
    gone,     ///< ended, perhaps not yet collected by its parent
    unknown,  ///< of another machine, or unreadable
};

/// Reads /proc/PID/stat. Thread safe.
process_state state_of(process_name const& process) noexcept;

constexpr bool is_lost(process_state state) noexcept {
    return state == process_state::gone || state == process_state::stopped;
}

/// Returns "process 4711 is stopped".
std::string describe(process_name const& process, process_state state);

/// The state and start time in the text of /proc/PID/stat; unknown if it is not such a text. Pure.
struct process_stat {
    process_state state = process_state::unknown;
    std::uint64_t started = 0;
    bool operator==(process_stat const&) const = default;
};
process_stat parse_stat(std::string_view text) noexcept;

}  // namespace muster
