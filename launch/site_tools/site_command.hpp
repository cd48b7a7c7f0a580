// `muster site` lists, shows, checks and starts site files.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Runs the subcommand, whose name is not in `args`; returns the exit code: 2 for a file with faults. Throws errc::usage and
/// errc::config for what the user can change.
int site_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
