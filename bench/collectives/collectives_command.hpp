// `muster-bench collectives`: measures collectives beside the other libraries of this machine.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Measures allreduce over muster's backends and over the libraries found on this machine, taking turns, and prints the table.
/// Returns the exit code: 1 if any result was wrong.
int collectives_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
