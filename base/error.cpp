#include "base/throw_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace muster {

std::string_view to_string(errc code) noexcept {
    switch (code) {
        case errc::usage: return "usage";
        case errc::config: return "config";
        case errc::parse: return "parse";
        case errc::not_found: return "not found";
        case errc::unavailable: return "unavailable";
        case errc::invalid_data: return "invalid data";
        case errc::system: return "system";
        case errc::io: return "i/o";
        case errc::placement: return "placement";
        case errc::timeout: return "timeout";
        case errc::peer_failed: return "peer failed";
        case errc::singleton: return "singleton";
        case errc::library: return "library";
        case errc::internal: return "internal";
    }
    return "unknown";
}

int exit_code(errc code) noexcept {
    switch (code) {
        case errc::usage:
        case errc::config: return 2;
        case errc::timeout: return 124;
        default: return 125;
    }
}

parse_error::parse_error(std::string_view origin, std::string_view text, std::size_t offset, std::string_view message, errc code)
    : parse_error(code, render_caret(origin, text, offset, message, code == errc::config), locate(text, offset).line,
                  locate(text, offset).column) {}

library_error::library_error(std::string_view library, std::string_view call, int native_code, std::string_view text)
    : error(errc::library, fmt::format("{}: {} failed: {} (code {})", library, call, text, native_code)),
      call_(call),
      native_code_(native_code) {}

void throw_system(std::string_view call, std::string_view object, int code, std::string_view hint) {
    if (code == 0) code = errno;
    std::string message = fmt::format("{} {}: {} (errno {})", call, object, std::strerror(code), code);
    if (!hint.empty()) message += fmt::format("; {}", hint);
    throw error(code == ENOENT ? errc::not_found : errc::system, message);
}

void expect(bool condition, std::string_view what, std::source_location where) {
    if (condition) return;
    throw_error(errc::internal, "{}:{}: expected {}; this is a fault in muster, please report it", where.file_name(),
                where.line(), what);
}

namespace {

constexpr std::size_t widest_shown = 100;

bool is_control(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Inside a character of several bytes in UTF-8.
bool goes_on(char c) noexcept {
    return (c & 0xC0) == 0x80;
}

/// A line as terminals may see it: what they would obey, and what is no UTF-8, is '?'.
std::string printable(std::string_view line) {
    std::string shown;
    for (std::size_t at = 0; at < line.size();) {
        std::size_t bytes = 1;
        while (!goes_on(line[at]) && static_cast<unsigned char>(line[at]) >= 0x80 && at + bytes < line.size() &&
               goes_on(line[at + bytes]))
            ++bytes;
        auto const one = line.substr(at, bytes);
        at += bytes;
        if (one == "\t")
            shown += ' ';
        else if (without_controls(one) == one)
            shown += one;
        else
            shown.append(bytes, '?');
    }
    return shown;
}

}  // namespace

text_position locate(std::string_view text, std::size_t offset) noexcept {
    auto const before = text.substr(0, std::min(offset, text.size()));
    auto const line_start = before.rfind('\n');
    return {static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1,
            line_start == std::string_view::npos ? before.size() + 1 : before.size() - line_start};
}

std::string render_caret(std::string_view origin, std::string_view text, std::size_t offset, std::string_view message,
                         bool is_file) {
    auto const where = locate(text, offset);
    std::size_t const start = std::min(offset, text.size()) - (where.column - 1);
    std::string_view line = text.substr(start, std::min(text.find('\n', start), text.size()) - start);
    std::size_t caret = where.column - 1;
    if (line.size() > widest_shown) {
        std::size_t cut = caret > widest_shown / 2 ? caret - widest_shown / 2 : 0;
        for (int i = 0; i < 3 && cut > 0 && goes_on(line[cut]); ++i) --cut;  // the bytes of a character at most
        std::size_t end = std::min(cut + widest_shown, line.size());
        for (int i = 0; i < 3 && end < line.size() && goes_on(line[end]); ++i) --end;
        line = line.substr(cut, end - cut);
        caret -= cut;
    }
    auto const shown = printable(line);
    caret -= static_cast<std::size_t>(std::ranges::count_if(shown.substr(0, caret), goes_on));
    std::string said(message);  // it may quote the text
    for (char& c : said)
        if (is_control(c)) c = '?';
    bool const has_place = is_file || text.find('\n') < text.size() - 1;
    auto const place = has_place ? fmt::format(":{}:{}", where.line, where.column) : std::string();
    return fmt::format("{}{}: {}\n  {}\n  {}^", origin, place, said, shown, std::string(caret, ' '));
}

}  // namespace muster
