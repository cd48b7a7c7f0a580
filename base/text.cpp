#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/letters.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

bool is_shell_safe(char c) noexcept {
    return is_alphanumeric(c) || std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
}

struct character {
    std::int32_t code;  ///< below 0: the byte is no part of a character in UTF-8
    std::size_t bytes;
};

/// Decodes the first character of a text that is not empty.
character first_character(std::string_view text) noexcept {
    auto const lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80) return {lead, 1};
    std::size_t const size = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
    if (size == 0 || text.size() < size) return {-1, 1};
    std::int32_t code = lead & (0xff >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        auto const next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0) != 0x80) return {-1, 1};
        code = code << 6 | (next & 0x3f);
    }
    constexpr std::int32_t least[]{0, 0, 0x80, 0x800, 0x10000};
    bool const valid = code >= least[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return valid ? character{code, size} : character{-1, 1};
}

/// Returns whether terminals obey the character: C0 except for line feed and tab, DEL, C1, line and paragraph separators, and what turns the direction of writing.
bool obeyed_by_terminals(char32_t c) noexcept {
    if (c == U'\n' || c == U'\t') return false;
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            std::size_t const above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

template <typename T>
std::optional<T> parse_number(std::string_view text) noexcept {
    T value{};
    auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
    auto const first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> pieces;
    std::size_t start = 0;
    for (;;) {
        auto const end = text.find(separator, start);
        pieces.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
        if (end == std::string_view::npos) return pieces;
        start = end + 1;
    }
}

std::string join(std::span<std::string const> pieces, std::string_view separator) {
    return fmt::format("{}", fmt::join(pieces.begin(), pieces.end(), separator));
}

std::string join_folders(std::initializer_list<std::string_view> lists) {
    std::string all;
    for (auto const list : lists)
        for (auto const folder : split(list, ':'))
            if (!folder.empty()) all.append(all.empty() ? "" : ":").append(folder);
    return all;
}

std::string counted(std::int64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
    return parse_number<std::int64_t>(text);
}

std::optional<double> parse_real(std::string_view text) noexcept {
    return parse_number<double>(text);
}

std::string without_controls(std::string_view text) {
    std::string clean;
    clean.reserve(text.size());
    while (!text.empty()) {
        auto const [code, bytes] = first_character(text);
        if (code < 0)
            clean += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        else if (!obeyed_by_terminals(static_cast<char32_t>(code)))
            clean += text.substr(0, bytes);
        else
            clean += code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
        text.remove_prefix(bytes);
    }
    return clean;
}

std::optional<std::size_t> not_utf8_at(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size();) {
        auto const [code, bytes] = first_character(text.substr(at));
        if (code < 0) return at;
        at += bytes;
    }
    return std::nullopt;
}

std::optional<std::string> nearest(std::string_view word, std::span<std::string const> candidates) {
    std::optional<std::string> best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (auto const& candidate : candidates) {
        auto const distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string shell_quote(std::string_view word) {
    if (word.find('\0') != std::string_view::npos)
        throw_error(errc::usage, "cannot quote a word with a NUL byte for a shell: '{}…'; remove the NUL",
                    word.substr(0, word.find('\0')));
    if (!word.empty() && std::ranges::all_of(word, is_shell_safe)) return std::string(word);
    std::string quoted = "'";
    for (char c : word) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

std::string shell_join(std::span<std::string const> words) {
    std::string line;
    for (auto const& word : words) {
        if (!line.empty()) line += ' ';
        line += shell_quote(word);
    }
    return line;
}

std::vector<std::string> shell_split(std::string_view line, std::string_view origin) {
    constexpr std::string_view blanks = " \t\r\n";
    std::vector<std::string> words;
    bool in_word = false;
    std::size_t opened = std::string_view::npos;  // where the quote that is open began
    for (std::size_t i = 0; i < line.size(); ++i) {
        char const c = line[i];
        bool const quoted = opened != std::string_view::npos;
        if (!quoted && blanks.find(c) != std::string_view::npos) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (quoted && c == line[opened])
            opened = std::string_view::npos;
        else if (!quoted && (c == '\'' || c == '"'))
            opened = i;
        else if (c != '\\' || (quoted && line[opened] == '\''))
            words.back() += c;
        else if (i + 1 == line.size())
            throw parse_error(origin, line, i, "nothing follows the backslash; write \\\\ for one", errc::usage);
        else if (quoted && std::string_view("\\\"$`").find(line[i + 1]) == std::string_view::npos)
            words.back() += c;
        else
            words.back() += line[++i];
    }
    if (opened != std::string_view::npos)
        throw parse_error(origin, line, opened, fmt::format("this {} is not closed", line[opened]), errc::usage);
    return words;
}

std::string_view find_text(std::span<embedded_text const> files, std::string_view name) {
    for (auto const& file : files)
        if (file.name == name) return file.text;
    throw error(errc::internal, "the file '" + std::string(name) + "' is not part of this program; please report it");
}

}  // namespace muster
