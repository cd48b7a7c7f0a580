// Carets: a place in a text, shown under its line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// Where a byte offset lies in a text; both from 1, the column in bytes.
struct text_position {
    std::size_t line = 1;
    std::size_t column = 1;
    bool operator==(text_position const&) const = default;
};
text_position locate(std::string_view text, std::size_t offset) noexcept;

/// "ORIGIN:LINE:COLUMN: MESSAGE", the line, and a caret under the fault; "ORIGIN: MESSAGE" where `text` is one line and no file
/// (an option, a variable). Unprintable bytes are shown as '?', long lines are cut around the caret, so that any bytes can be
/// shown on a terminal.
std::string render_caret(std::string_view origin, std::string_view text, std::size_t offset, std::string_view message,
                         bool is_file = false);

}  // namespace muster
