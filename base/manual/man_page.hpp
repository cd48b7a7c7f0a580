// Man pages of programs and of their commands, written in roff.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/command/command_set.hpp"

namespace muster {

/// The head of a page and its section NAME: "muster-run", "start a program".
std::string page_head(std::string_view name, std::string_view summary);

/// One option: "-o, --output FILE", and what it does.
std::string option_paragraph(char letter, std::string_view name, std::string_view argument, std::string_view text);

/// Lines as they stand, in letters of one width; empty for no lines.
std::string example_block(std::string_view lines);

/// SEE ALSO: muster(1) and its programs and commands, but `own`.
std::string see_also(std::vector<std::string> const& pages, std::string_view own);

/// The page of a program with all of its commands that are not hidden.
std::string program_page(command_set const& commands);

/// Adds the hidden command "man", which prints program_page().
void add_man_command(command_set& commands);

}  // namespace muster
