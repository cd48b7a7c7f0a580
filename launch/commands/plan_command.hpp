// `muster plan`: prints where each rank would go.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Prints where each rank would go, without starting anything; returns the exit code.
int plan_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
