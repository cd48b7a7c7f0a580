// Help texts of muster's commands, written from the tables of commands and settings.
#pragma once

#include <string>
#include <string_view>

#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

/// "-n, --ranks N": how an option is written.
std::string synopsis_of(setting const& row);

/// What `muster COMMAND --help` prints: usage, the commonest uses, the common options; with `all` every option, by group.
std::string help_text(std::string_view command, bool all);

/// Prints help if --help or --help-all is among what was given; true if so.
bool print_help_if_asked(std::string_view command, settings_result const& given);

}  // namespace muster
