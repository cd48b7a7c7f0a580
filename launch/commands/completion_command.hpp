// muster completion: what a shell needs to complete muster's commands, options and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns the exit code; throws errc::usage.
int completion_command(std::vector<std::string> const& args, environment const& variables);

/// The script for a shell, from the tables of commands and settings. Pure.
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace muster
