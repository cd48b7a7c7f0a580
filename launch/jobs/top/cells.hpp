// Cells of a table on a terminal: printable text of a known display width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// Returns the text without what a terminal obeys (without_controls), in one line; `?` replaces characters whose width is zero or not known,
/// such as combining accents, joiners and emoji. Pure.
std::string printable(std::string_view text);

/// Returns the columns that such a text takes: 2 for a character of the East Asian scripts. Pure.
std::size_t display_width(std::string_view printable_text);

/// Returns such a text in exactly `width` columns, filled with blanks at its end or, for `right`, at its beginning; one that is cut ends in
/// "…". Pure.
std::string fit(std::string_view printable_text, std::size_t width, bool right = false);

/// Returns the amount in three digits at most, for a narrow column: "812K", "1.5G", "71G". Pure.
std::string short_bytes(double bytes);
/// Does the same for a time: "4s", "99s", "12m", "5h", "3d". Pure.
std::string short_time(double seconds);

}  // namespace muster
