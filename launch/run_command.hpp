// muster run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/run_options.hpp"

namespace muster {

/// Reads the options of `muster run`; nothing if help was asked for. Throws errc::usage, parse_error.
std::optional<run_options> parse_run_options(std::vector<std::string> const& args);

/// Runs it; returns the exit code.
int run_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
