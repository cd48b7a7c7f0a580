// Runs a command of the user's about a rank that hangs (--on-hang).
#pragma once

#include <chrono>
#include <string>

#include "base/environment.hpp"

namespace muster {

inline constexpr std::chrono::milliseconds hang_command_limit{10'000};

/// Runs `command` by the shell with each {pid} in it replaced; returns what it printed, and how it ended if not with 0. At `limit`
/// it is killed.
std::string ask_about(std::string const& command, long pid, environment const& variables, std::chrono::milliseconds limit);

}  // namespace muster
