// Text in columns, for terminals.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// The rows, one a line, each column as wide as its widest cell (counted in code points) and two blanks from the next; numbers,
/// that is columns whose cells below the first row all begin with a digit, a sign or a dash, are set flush right. Rows may be
/// shorter than the first.
std::string align_columns(std::vector<std::vector<std::string>> const& rows);

}  // namespace muster
