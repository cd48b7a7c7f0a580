// `muster config`: shows the value of every setting and where it came from, and checks settings files.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

/// Returns the exit code; throws errc::usage and errc::config.
int config_command(std::vector<std::string> const& args, environment const& variables);

/// The settings that files may set, with the values in `given`; without `all` only those that somebody has set. A table for
/// people, or JSON (schema "muster.config/1"). Pure.
std::string config_table(settings_result const& given, bool all);
std::string config_json(settings_result const& given, bool all);

}  // namespace muster
