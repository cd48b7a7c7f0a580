// `muster-bench train`: trains the MNIST network, data-parallel, timed.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Collective over the ranks that this process belongs to. Returns the exit code; throws muster::error.
int train_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
