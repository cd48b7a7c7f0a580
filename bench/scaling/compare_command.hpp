// `muster-bench compare`: trains on one rank and with PyTorch, one thread each.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const compare_row;

/// Returns the exit code; throws muster::error.
int compare_command(given_options const& given, environment const& variables);

}  // namespace muster
