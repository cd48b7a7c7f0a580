// Help texts of muster's commands, made from the tables of commands and settings.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/command/command_set.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

// The text of `muster --version`: muster's version, and what it was built with.

/// Returns lines with their ends. The first is "muster 0.1.0"; PMIx is the one that this process has loaded.
std::string version_text();

/// Returns "-n, --ranks N", the spelling of an option.
std::string synopsis_of(setting const& row);

/// Returns what `muster COMMAND --help` prints, in lines of any width: usage, the commonest uses, the common options; with `all`
/// every option, by group.
std::string help_text(std::string_view command, bool all);

/// Prints help if --help or --help-all is among the given options; returns true if so.
bool print_help_if_asked(std::string_view command, settings_result const& given);

// The table of muster's commands for help, completion and man pages; muster_main.cpp has their functions.

/// Returns the commands that this build has, in the order of display. Their options are the rows of the table of settings.
std::span<command_row const> commands();
/// Returns them with those of parts that it lacks (parts.hpp).
std::span<command_row const> commands_of_all_parts() noexcept;
command_row const* find_command(std::string_view name);

}  // namespace muster
