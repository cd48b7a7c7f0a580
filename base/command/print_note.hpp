// Prints a note for the user. What it quotes of variables, files and other programs does nothing to a terminal.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace muster {

/// "muster: note: TEXT" on standard error; lines stay lines, and other control characters are shown as "\x1b". A reader that is gone ends nothing.
void print_note(std::string_view text);

/// Does the same for a text in which the values stand in place of {}.
template <typename First, typename... Rest>
void print_note(fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
    print_note(std::string_view(fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...)));
}

}  // namespace muster
