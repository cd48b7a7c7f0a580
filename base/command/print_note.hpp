// Prints a note for the user. What it quotes of variables, files and other programs does nothing to a terminal.
#pragma once

#include <string_view>

namespace muster {

/// "muster: note: TEXT" on standard error; lines stay lines, and other control characters are shown as "\x1b". A reader that is gone ends nothing.
void print_note(std::string_view text);

}  // namespace muster
