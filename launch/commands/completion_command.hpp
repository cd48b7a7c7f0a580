// `muster completion`: prints the completion script for a shell.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns the exit code; throws errc::usage.
int completion_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
