#include "launch/jobs/top/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace muster {

namespace {

struct code_range {
    char32_t first, last;
    int width;
};

/// Characters of one and of two columns (Unicode Standard Annex 11). Those of ambiguous width, such as "…", count as one: terminals differ where they are set up
/// for East Asian scripts.
constexpr std::array known_ranges{
    code_range{0x20, 0x7e, 1},     code_range{0xa1, 0xac, 1},     code_range{0xae, 0x2ff, 1},    code_range{0x370, 0x482, 1},
    code_range{0x48a, 0x52f, 1},   code_range{0x2010, 0x2027, 1}, code_range{0x2030, 0x205e, 1}, code_range{0x20a0, 0x20bf, 1},
    code_range{0x2190, 0x22ff, 1}, code_range{0x2500, 0x259f, 1}, code_range{0x2e80, 0x2fd5, 2}, code_range{0x3001, 0x3029, 2},
    code_range{0x3041, 0x3096, 2}, code_range{0x30a0, 0x30ff, 2}, code_range{0x3105, 0x312f, 2}, code_range{0x3131, 0x3163, 2},
    code_range{0x3190, 0x31e3, 2}, code_range{0x3400, 0x4dbf, 2}, code_range{0x4e00, 0x9fff, 2}, code_range{0xac00, 0xd7a3, 2},
    code_range{0xf900, 0xfa6d, 2}, code_range{0xff01, 0xff60, 2}, code_range{0xffe0, 0xffe6, 2}, code_range{0x20000, 0x2a6df, 2},
};

/// A character of valid UTF-8, and the columns that it takes; 0: none or not known.
struct wide_character {
    std::string_view bytes;
    std::size_t width = 0;
};

wide_character first_of(std::string_view text) {
    auto const lead = static_cast<unsigned char>(text.front());
    auto const size = std::min<std::size_t>(text.size(), lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);
    char32_t code = size == 1 ? lead : lead & (0xffu >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    auto const found =
        std::ranges::find_if(known_ranges, [&](auto const& range) { return code >= range.first && code <= range.last; });
    return {text.substr(0, size), found == known_ranges.end() ? 0 : static_cast<std::size_t>(found->width)};
}

/// Returns the number in three digits at most, "1.5", "71", with the unit.
std::string three_digits(double number, std::string_view unit) {
    return fmt::format("{:.{}f}{}", number, number < 9.95 ? 1 : 0, unit);
}

}  // namespace

std::string printable(std::string_view text) {
    auto const clean = without_controls(text);
    std::string shown;
    for (std::string_view rest = clean; !rest.empty();) {
        auto const character = first_of(rest);
        if (character.bytes == "\n" || character.bytes == "\t")
            shown += ' ';
        else
            shown += character.width > 0 ? character.bytes : "?";
        rest.remove_prefix(character.bytes.size());
    }
    return shown;
}

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) {
        auto const character = first_of(text);
        width += character.width;
        text.remove_prefix(character.bytes.size());
    }
    return width;
}

std::string fit(std::string_view text, std::size_t width, bool right) {
    std::string shown(text);
    auto used = display_width(text);
    if (used > width) {
        shown.clear();
        used = 0;
        for (; width > 0 && used + first_of(text).width <= width - 1; text.remove_prefix(first_of(text).bytes.size())) {
            shown += first_of(text).bytes;
            used += first_of(text).width;
        }
        if (width > 0) shown += "…", ++used;
    }
    std::string const fill(width - used, ' ');
    return right ? fill + shown : shown + fill;
}

std::string short_bytes(double bytes) {
    static constexpr std::string_view units[]{"B", "K", "M", "G", "T", "P"};
    std::size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
    return unit == 0 ? fmt::format("{:.0f}B", bytes) : three_digits(bytes, units[unit]);
}

std::string short_time(double seconds) {
    if (seconds < 99.5) return fmt::format("{:.0f}s", std::max(seconds, 0.0));
    if (seconds < 99.5 * 60) return fmt::format("{:.0f}m", seconds / 60);
    if (seconds < 48 * 3600) return fmt::format("{:.0f}h", seconds / 3600);
    return fmt::format("{:.0f}d", std::min(seconds / 86400, 9999.0));
}

}  // namespace muster
