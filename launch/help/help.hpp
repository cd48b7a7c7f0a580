// Help texts of muster's commands, written from the tables of commands and settings.
#pragma once

#include <string>
#include <string_view>

#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

// The text of `muster --version`: muster's version, and what it was built with.

/// Lines with their ends. The first is "muster 0.1.0"; PMIx is the one that this process has loaded.
std::string version_text();

/// "-n, --ranks N": how an option is written.
std::string synopsis_of(setting const& row);

/// What `muster COMMAND --help` prints: usage, the commonest uses, the common options; with `all` every option, by group.
std::string help_text(std::string_view command, bool all);

/// Prints help if --help or --help-all is among what was given; true if so.
bool print_help_if_asked(std::string_view command, settings_result const& given);

}  // namespace muster
