// Man pages, written in Markdown from the tables of commands; the build makes them what man reads (cmake/muster_manual.cmake).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/command/command_set.hpp"

namespace muster {

/// `text` so that Markdown shows just that.
std::string markdown_of(std::string_view text);

/// Title and section NAME: "muster-run", "start a program".
std::string page_head(std::string_view name, std::string_view summary);

/// One option: "-o, --output FILE", and what it does.
std::string option_paragraph(char letter, std::string_view name, std::string_view argument, std::string_view text);

/// Lines as they stand.
std::string example_block(std::string_view lines);

/// Returns what ends a page: the place of the sections of docs/environment.md that name `page` ("muster run"), and SEE ALSO, which names `pages` without `own`.
std::string page_end(std::string_view page, std::vector<std::string> const& pages, std::string_view own);

/// Adds the hidden command "manual", which prints the page of the program with all of its commands that are not hidden.
void add_manual_command(command_set& commands);

}  // namespace muster
