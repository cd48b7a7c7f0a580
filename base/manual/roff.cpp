#include "base/manual/roff.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace muster {

namespace {

constexpr unsigned ellipsis = 0x2026;  // which a terminal without UTF-8 cannot show

/// A code point of UTF-8 at `at`, which is moved behind it; 0xfffd for bytes that are none.
unsigned next_code_point(std::string_view text, std::size_t& at) {
    auto const first = static_cast<unsigned char>(text[at++]);
    int const tail = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (tail == 0 || at + static_cast<std::size_t>(tail) > text.size()) return 0xfffd;
    unsigned value = first & (0x3fu >> tail);
    for (int i = 0; i < tail; ++i) value = (value << 6) | (static_cast<unsigned char>(text[at++]) & 0x3fu);
    return value;
}

}  // namespace

std::string roff_quote(std::string_view text) {
    std::string quoted;
    bool at_line_start = true;
    for (std::size_t at = 0; at < text.size();) {
        char const c = text[at];
        if (at_line_start && (c == '.' || c == '\'')) quoted += "\\&";
        at_line_start = c == '\n';
        if (static_cast<unsigned char>(c) >= 0x80) {
            auto const point = next_code_point(text, at);
            quoted += point == ellipsis ? "\\&..." : fmt::format("\\[u{:04X}]", point);
            continue;
        }
        ++at;
        switch (c) {
            case '\\': quoted += "\\e"; break;
            case '-': quoted += "\\-"; break;
            case '\'': quoted += "\\(aq"; break;
            case '"': quoted += "\\(dq"; break;
            case '^': quoted += "\\(ha"; break;
            case '~': quoted += "\\(ti"; break;
            case '`': quoted += "\\(ga"; break;
            default: quoted += c;
        }
    }
    return quoted;
}

std::string roff_bold(std::string_view text) {
    return fmt::format("\\fB{}\\fR", roff_quote(text));
}

std::string roff_paragraphs(std::string_view text) {
    std::string page;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = std::min(text.find("\n\n", at), text.size());
        page += fmt::format("{}{}\n", page.empty() ? "" : ".PP\n", roff_quote(trim(text.substr(at, end - at))));
        at = end + 2;
    }
    return page;
}

}  // namespace muster
