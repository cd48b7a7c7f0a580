// Tables of text in columns, for terminals.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Rows of cells under a header, flush left.
class text_table {
  public:
    explicit text_table(std::vector<std::string> header) { add(std::move(header)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

    /// Columns as wide as their widest cell (counted in code points), two blanks between them. Lines that would be wider than
    /// `most_width` are avoided: the widest columns become narrower and their cells go on in the next lines, divided at blanks.
    /// 0: any width.
    std::string text(std::size_t most_width = 0) const;

  private:
    std::vector<std::vector<std::string>> rows_;
};

/// The rows as text_table shows them, but numbers flush right: columns whose cells below the first row all begin with a digit, a
/// sign or a dash. Rows may be shorter than the first.
std::string align_columns(std::vector<std::vector<std::string>> const& rows);

/// The width that a table may have: COLUMNS, else that of the terminal that standard output is; 0: neither is there, and rows stay
/// whole for programs that read lines.
std::size_t terminal_width(environment const& variables);

struct terminal_cells {
    std::size_t columns, rows;
};
/// The size of the terminal at this descriptor; 80 by 24 where it is not known.
terminal_cells terminal_size(int fd) noexcept;

}  // namespace muster
