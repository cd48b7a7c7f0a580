// `muster-bench compare`: trains on one rank and with PyTorch, one thread each.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns the exit code; throws muster::error.
int compare_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
