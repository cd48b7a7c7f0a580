// The hidden command `muster shim`: starts and watches one rank; engines start it once a rank.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Watches one rank on this node (shim.hpp). Returns the exit code of the process.
int shim_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
