#include "base/text_table.hpp"

#include <algorithm>

namespace muster {

namespace {

std::size_t width_of(std::string const& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string text_table::text() const {
    std::vector<std::size_t> widths;
    for (auto const& row : rows_) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
    }
    std::string all;
    for (auto const& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            all += row[c];
            if (c + 1 < row.size()) all.append(widths[c] + 2 - width_of(row[c]), ' ');
        }
        all += '\n';
    }
    return all;
}

}  // namespace muster
