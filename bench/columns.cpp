#include "bench/columns.hpp"

#include <algorithm>
#include <cctype>

namespace muster {

namespace {

std::size_t width_of(std::string const& cell) {
    return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool looks_numeric(std::string const& cell) {
    return cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+';
}

}  // namespace

std::string align_columns(std::vector<std::vector<std::string>> const& rows) {
    std::vector<std::size_t> widths;
    std::vector<bool> right;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t c = 0; c < rows[r].size(); ++c) {
            if (c == widths.size()) {
                widths.push_back(0);
                right.push_back(true);
            }
            widths[c] = std::max(widths[c], width_of(rows[r][c]));
            if (r > 0 && !looks_numeric(rows[r][c])) right[c] = false;
        }
    }
    std::string out;
    for (auto const& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            std::string const pad(widths[c] - width_of(row[c]), ' ');
            if (c > 0) line += "  ";
            line += right[c] ? pad + row[c] : row[c] + pad;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

}  // namespace muster
