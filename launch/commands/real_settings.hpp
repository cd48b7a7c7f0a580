// The sources of settings on this machine: muster.toml files and site files.
#pragma once

#include "base/environment.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

/// ./muster.toml, $XDG_CONFIG_HOME (or ~/.config) /muster/muster.toml, and site files. Reading a file that cannot be read throws
/// errc::config.
settings_sources real_settings(environment const& variables);

}  // namespace muster
