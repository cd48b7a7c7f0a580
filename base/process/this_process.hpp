// A process on itself: its program, another in its place; and whether a process handles a signal.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

// Replaces this process by another program.

/// Becomes the program of the file `path`, with `words` as its argv (the first is its own name) and `variables`; what stands in standard output's and
/// standard error's buffers is written first. Does not return. Throws errc::system if the program cannot be executed.
[[noreturn]] void replace_program(std::string const& path, std::vector<std::string> const& words, environment const& variables);

// Tells whether another process has installed a handler for a signal, which would end it otherwise.

/// A set of signals of the process, signal N as bit N-1, by its field in /proc/PID/status, proc(5). 0 if there is no such process, or it may
/// not be read. Any thread.
std::uint64_t signals_in_status(pid_t pid, std::string_view field);

/// The signals that the process has a handler for. One that it ignores or blocks is not among them.
inline std::uint64_t caught_signals(pid_t pid) {
    return signals_in_status(pid, "SigCgt:");
}

/// Returns whether the signal (1 to 64) is in the set; no other number is.
constexpr bool holds_signal(std::uint64_t signals, int number) noexcept {
    return number >= 1 && number <= 64 && (signals >> (number - 1) & 1) != 0;
}

inline bool catches_signal(pid_t pid, int signal_number) {
    return holds_signal(caught_signals(pid), signal_number);
}

// Finds the file of the running program.

/// The absolute path of the program that this process runs, with links resolved. Throws errc::system.
std::filesystem::path self_program();

// A timeline of a program's phases: logs at level trace when each ended and how long it took.

/// Logs, at level trace alone, that the phase called `name` ends now: milliseconds since the process began (up to
/// the first call its processor time, so with the loading of its libraries), those since the last phase ended, and processor time
/// of the process. Costs a comparison otherwise. A child by fork goes on from its parent's time. From one thread.
void end_phase(std::string_view name);

}  // namespace muster
