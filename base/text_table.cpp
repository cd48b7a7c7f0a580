#include "base/text_table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/text.hpp"

namespace muster {

namespace {

using table_rows = std::vector<std::vector<std::string>>;

constexpr std::size_t gap = 2;
constexpr std::size_t narrowest = 12;  // of a column that is made narrower

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::vector<std::size_t> widths_of(table_rows const& rows) {
    std::vector<std::size_t> widths;
    for (auto const& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
    }
    return widths;
}

/// Takes from the widest column until the line fits, or no column can give more.
void narrow(std::vector<std::size_t>& widths, std::size_t most_width) {
    auto const total = [&] { return std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * gap); };
    while (!widths.empty() && total() > most_width) {
        auto const widest = std::ranges::max_element(widths);
        if (*widest <= narrowest) return;
        --*widest;
    }
}

/// The cell's lines, divided at blanks; a word that is wider than `width` stands alone.
std::vector<std::string> wrap(std::string const& cell, std::size_t width) {
    std::vector<std::string> lines{""};
    if (width_of(cell) <= width) return {cell};
    for (auto const word : split(cell, ' ')) {
        auto const used = width_of(lines.back());
        if (used > 0 && used + 1 + width_of(word) > width)
            lines.emplace_back(word);
        else
            lines.back() += std::string(used > 0 ? " " : "") + std::string(word);
    }
    return lines;
}

std::string line_of(std::vector<std::string> const& row, std::vector<std::size_t> const& widths, std::vector<bool> const& right) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
        std::string const pad(widths[c] - std::min(widths[c], width_of(row[c])), ' ');
        if (c > 0) line.append(gap, ' ');
        line += right[c] ? pad + row[c] : row[c] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + '\n';
}

bool looks_numeric(std::string const& cell) {
    return cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+';
}

}  // namespace

std::string text_table::text(std::size_t most_width) const {
    auto widths = widths_of(rows_);
    if (most_width > 0) narrow(widths, most_width);
    std::vector<bool> const right(widths.size(), false);
    std::string all;
    for (auto const& row : rows_) {
        std::vector<std::vector<std::string>> cells;
        std::size_t height = 1;
        for (std::size_t c = 0; c < row.size(); ++c) {
            cells.push_back(wrap(row[c], widths[c]));
            height = std::max(height, cells.back().size());
        }
        for (std::size_t i = 0; i < height; ++i) {
            std::vector<std::string> line;
            for (auto const& cell : cells) line.push_back(i < cell.size() ? cell[i] : "");
            all += line_of(line, widths, right);
        }
    }
    return all;
}

std::string align_columns(std::vector<std::vector<std::string>> const& rows) {
    auto const widths = widths_of(rows);
    std::vector<bool> right(widths.size(), true);
    for (std::size_t r = 1; r < rows.size(); ++r)
        for (std::size_t c = 0; c < rows[r].size(); ++c)
            if (!looks_numeric(rows[r][c])) right[c] = false;
    std::string all;
    for (auto const& row : rows) all += line_of(row, widths, right);
    return all;
}

std::size_t terminal_width(environment const& variables) {
    if (auto const columns = parse_integer(variables.get_or("COLUMNS", "")); columns && *columns > 0)
        return static_cast<std::size_t>(*columns);
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

terminal_cells terminal_size(int fd) noexcept {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) != 0) size = {};
    return {size.ws_col < 2u ? 80u : size.ws_col, size.ws_row < 2u ? 24u : size.ws_row};
}

}  // namespace muster
