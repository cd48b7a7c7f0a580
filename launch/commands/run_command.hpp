// `muster run`: reads its options and runs the job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Reads the options of `muster run` and the settings below them (environment, muster.toml, site). Prints help and returns
/// nothing if that was asked for; prints notes. Throws errc::usage, errc::config.
std::optional<run_options> parse_run_options(std::vector<std::string> const& args, environment const& variables);

/// Runs it; returns the exit code.
int run_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
