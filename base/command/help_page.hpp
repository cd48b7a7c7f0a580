// Lays the lines of a help text out for a terminal: rows of options keep their column, and shell commands stay commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace muster {

inline constexpr std::size_t usual_help_width = 80;

/// Returns how wide help is printed: COLUMNS, else the width of the terminal that standard output or standard error is, else 80.
std::size_t help_width(environment const& variables);

/// `text` with no line wider than `width`, in code points, as long as it is at least 40: lines are divided at blanks, words that have
/// no room at one of "|,/=". What stands behind two blanks or more goes on in its column; a divided example gets a backslash; a
/// paragraph is filled anew. Lines that fit stay as they are. Pure.
std::string fold_help(std::string_view text, std::size_t width);

}  // namespace muster
