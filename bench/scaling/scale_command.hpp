// `muster-bench scale`: trains on several numbers of ranks and compares them.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const scale_row;

/// Returns the exit code; throws muster::error.
int scale_command(given_options const& given, environment const& variables, std::string const& line);

}  // namespace muster
