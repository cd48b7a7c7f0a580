// `muster site`: lists, shows, checks and begins site files.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// The subcommand, without its own name in `args`; returns the exit code: 2 for a file with faults. Throws errc::usage and
/// errc::config for what the user can change.
int site_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
