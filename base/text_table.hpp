// Tables on a terminal.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// Columns as wide as their widest cell (counted in code points), two blanks between them, the last one ragged.
class text_table {
  public:
    explicit text_table(std::vector<std::string> header) { add(std::move(header)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    std::string text() const;

  private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster
