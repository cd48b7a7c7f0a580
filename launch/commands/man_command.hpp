// muster man: man pages, from the tables of commands and settings.
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

/// `text` so that troff shows just that: no character of it commands anything, none is outside ASCII. A hyphen is a minus, as it
/// is in options.
std::string roff_quote(std::string_view text);

}  // namespace muster
