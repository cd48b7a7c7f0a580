// `muster-bench launch`: measures the start and end of ranks beside other launchers.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Starts programs by muster and by the launchers found here, taking turns, and prints the medians; or looks for hangs. Returns
/// the exit code: 1 if a run of muster's failed or hung.
int launch_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
