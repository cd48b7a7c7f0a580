// `muster-bench train`: trains a network of the published tables, data-parallel, timed.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const train_row;

/// Collective over the ranks that this process belongs to. Returns the exit code; throws muster::error.
int train_command(given_options const& given, environment const& variables);

}  // namespace muster
