// `muster-bench simulate`: times muster's allreduces and training steps on a modelled machine.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const simulate_row;

/// Returns the exit code; throws muster::error.
int simulate_command(given_options const& given, environment const& variables);

}  // namespace muster
