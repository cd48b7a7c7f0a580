// Running a scheduler's command and keeping what it printed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

inline constexpr std::chrono::milliseconds command_limit{10'000};
inline constexpr std::size_t command_output_limit = std::size_t{64} << 20;  ///< of stdout; qstat of 10,000 nodes is about 1 MB

/// Runs `argv` (found along PATH of `variables`, no shell) with an empty standard input. Returns once it has ended, or at the
/// latest `limit` after its start: then it and its process group are killed, and the status is 124. Descendants that outlive it
/// do not hold this call. 127: no such program; 126: it cannot be executed; 128+n: ended by signal n; 125: it printed more than
/// command_output_limit. Never throws for what the command does; throws errc::system if no process can be made. Call from the
/// main thread, as spawn().
command_output run_captured(std::vector<std::string> const& argv, environment const& variables,
                            std::chrono::milliseconds limit = command_limit);

}  // namespace muster
