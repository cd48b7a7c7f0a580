// `muster-bench launch`: compares the start and end of ranks with other launchers.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const launch_row;

/// Starts programs by muster and by the launchers found here, taking turns, and prints the medians; or looks for hangs. Returns
/// the exit code: 1 if a run of muster's failed or hung.
int launch_command(given_options const& given, environment const& variables);

}  // namespace muster
