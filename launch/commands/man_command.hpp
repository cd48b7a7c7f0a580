// Man pages of muster and of its commands, and the command that prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Prints the page of muster or of a command as man(7) source; returns the exit code. Throws errc::usage.
int man_command(std::vector<std::string> const& args, environment const& variables);

/// The page; of muster itself for an empty `command`. Pure.
std::string man_page(std::string_view command);

}  // namespace muster
