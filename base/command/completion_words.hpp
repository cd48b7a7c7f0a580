// The words that a shell offers on a program's command line: commands and options, for the scripts of `muster completion`.
#pragma once

#include <string>
#include <vector>

#include "base/command/command_set.hpp"

namespace muster {

/// Without a command the names of the commands that are not hidden; with one its options: "--output". Empty for a command that is
/// not there. Pure.
std::vector<std::string> completion_words(command_set const& commands, std::string const& command);

/// Adds the hidden command "completion [COMMAND]", which prints completion_words(), one on a line.
void add_completion_command(command_set& commands);

}  // namespace muster
