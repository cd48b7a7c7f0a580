// `muster script`: prints a job script for a site.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/site/script_plan.hpp"

namespace muster {

/// Throws errc::usage for what is not an option, a missing one, a second one or a value that does not parse; errc::config for a
/// settings file that is not right.
script_options parse_script_options(std::vector<std::string> const& args, settings_sources const& sources = {});

/// The subcommand, without its own name in `args`: the script on standard output, notes on standard error. Returns the exit code;
/// throws errc::usage or errc::config for what the user can change. Nothing is printed on standard output unless all is right.
int script_command(std::vector<std::string> const& args, environment const& env);

}  // namespace muster
