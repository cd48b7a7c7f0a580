// `muster-bench scale`: trains on several numbers of ranks and compares them.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns the exit code; throws muster::error.
int scale_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
