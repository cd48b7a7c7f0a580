// `muster-bench collectives`: compares collectives with those of other libraries on this machine.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const collectives_row;

/// `line` is the command line, for the JSON. Measures collectives over muster's backends and over the libraries found on this
/// machine, taking turns, and prints the tables. Returns the exit code: 1 if any result was wrong.
int collectives_command(given_options const& given, environment const& variables, std::string const& line);

}  // namespace muster
