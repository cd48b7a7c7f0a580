// Completion scripts for shells, written from the tables of commands and settings.
#pragma once

#include <string>

namespace muster {

/// The script for a shell. Pure.
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace muster
