#include "base/caret.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

namespace {

constexpr std::size_t widest_shown = 100;

bool is_control(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

text_position locate(std::string_view text, std::size_t offset) noexcept {
    auto const before = text.substr(0, std::min(offset, text.size()));
    auto const line_start = before.rfind('\n');
    return {static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
            line_start == std::string_view::npos ? before.size() + 1 : before.size() - line_start};
}

std::string render_caret(std::string_view origin, std::string_view text, std::size_t offset, std::string_view message,
                         bool is_file) {
    auto const where = locate(text, offset);
    std::size_t const start = std::min(offset, text.size()) - (where.column - 1);
    std::string_view line = text.substr(start, std::min(text.find('\n', start), text.size()) - start);
    std::size_t caret = where.column - 1;
    if (line.size() > widest_shown) {
        std::size_t const cut = caret > widest_shown / 2 ? caret - widest_shown / 2 : 0;
        line = line.substr(cut, widest_shown);
        caret -= cut;
    }
    std::string shown(line);
    for (char& c : shown)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = c == '\t' ? ' ' : '?';
    std::string said(message);  // it may quote the text
    for (char& c : said)
        if (is_control(c)) c = '?';
    bool const has_place = is_file || text.find('\n') < text.size() - 1;
    auto const place = has_place ? fmt::format(":{}:{}", where.line, where.column) : std::string();
    return fmt::format("{}{}: {}\n  {}\n  {}^", origin, place, said, shown, std::string(caret, ' '));
}

}  // namespace muster
