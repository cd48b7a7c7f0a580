#include "base/command/help_page.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "base/text_table.hpp"

namespace muster {

namespace {

constexpr std::size_t least_room = 24;         ///< of a column; where there is less it moves to the left
constexpr std::size_t widest_options = 32;     ///< the column behind the options is not farther right
constexpr std::size_t indent_of_rest = 6;      ///< of an example's next lines
constexpr std::string_view continued = " \\";  ///< behind a line of the shell that goes on

/// Counts code points.
std::size_t cells(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// "  --output FILE      the file": the first part begins behind the indent, the second in a column.
struct help_line {
    std::size_t indent = 0;
    std::string_view head, tail;
    std::size_t column = 0;  ///< of the tail; 0: no tail

    bool is_option() const { return indent > 0 && head.starts_with('-'); }
    bool is_prose() const { return indent == 0 && tail.empty() && !head.empty(); }
};

help_line read_line(std::string_view text) {
    help_line line;
    line.indent = std::min(text.find_first_not_of(' '), text.size());
    auto const gap = text.find("  ", line.indent);
    line.head = text.substr(line.indent, gap == text.npos ? gap : gap - line.indent);
    auto const tail = gap == text.npos ? gap : text.find_first_not_of(' ', gap);
    if (tail == text.npos) return line;
    line.tail = text.substr(tail);
    line.column = cells(text.substr(0, tail));
    return line;
}

/// Returns how many bytes of a word that is too wide stand in `room`.
std::size_t cut_of(std::string_view word, std::size_t room) {
    std::size_t end = 0;
    for (std::size_t seen = 0; end < word.size(); ++end)
        if ((word[end] & 0xC0) != 0x80 && seen++ == room) break;
    auto const mark = word.substr(0, end).find_last_of("|,/=");
    return mark == word.npos || mark == 0 ? end : mark + 1;
}

/// Words in lines of at most `width`: the first goes on behind `first` cells, the others begin with `indent` blanks.
struct folding {
    std::size_t width = 0;
    std::size_t first = 0;
    std::size_t indent = 0;
    bool is_shell = false;  ///< words stay whole, and a line that goes on says so
};

std::string fold_words(std::string_view text, folding const& how) {
    std::string folded;
    auto const room = how.width - (how.is_shell ? continued.size() : 0);
    std::size_t at = how.first;
    bool is_begun = false;
    auto const next_line = [&] {
        if (how.is_shell) folded += continued;
        folded += '\n' + std::string(how.indent, ' ');
        at = how.indent;
        is_begun = false;
    };
    for (auto word : split(text, ' ')) {
        if (is_begun && at + 1 + cells(word) > room) next_line();
        if (is_begun) folded += ' ', ++at;
        while (!how.is_shell && at + cells(word) > room && room > how.indent) {
            auto const cut = cut_of(word, room - at);
            folded += word.substr(0, cut);
            word.remove_prefix(cut);
            next_line();
        }
        folded += word;
        at += cells(word);
        is_begun = true;
    }
    return folded;
}

std::string fold_line(help_line const& line, std::size_t options_column, std::size_t width) {
    auto text = std::string(line.indent, ' ');
    auto const begin = [&](std::size_t indent, bool is_shell) {
        return fold_words(line.head, {.width = width, .first = line.indent, .indent = indent, .is_shell = is_shell});
    };
    if (line.indent == 0) {  // usage: the command's name stands out
        auto const name = std::min(line.head.find(" [") + 1, width / 3);
        text += begin(line.tail.empty() ? 0 : std::max<std::size_t>(name, 4), false);
        return line.tail.empty() ? text : text + "\n  " + fold_words(line.tail, {.width = width, .first = 2, .indent = 2});
    }
    if (line.tail.empty()) return text + begin(indent_of_rest, !line.is_option());
    auto const most = std::max(width - std::min(width, least_room), line.indent + 2);
    auto const column = std::min(line.is_option() ? options_column : line.column, most);
    auto const end = line.indent + cells(line.head);
    text += end <= width ? std::string(line.head) : begin(indent_of_rest, !line.is_option());
    text += end + 2 <= column ? std::string(column - end, ' ') : '\n' + std::string(column, ' ');
    return text + fold_words(line.tail, {.width = width, .first = column, .indent = column});
}

}  // namespace

std::size_t help_width(environment const& variables) {
    if (auto const known = terminal_width(variables); known > 0) return known;
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_help_width;
}

std::string fold_help(std::string_view text, std::size_t width) {
    auto const lines = split(text, '\n');
    std::vector<help_line> read;
    std::size_t options_column = 0;
    for (auto const line : lines) {
        read.push_back(read_line(line));
        if (read.back().is_option() && read.back().column <= widest_options)
            options_column = std::max(options_column, read.back().column);
    }
    std::string folded;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) folded += '\n';
        auto end = i;
        bool fits = cells(lines[i]) <= width;
        for (; read[i].is_prose() && end + 1 < lines.size() && read[end + 1].is_prose(); ++end)
            fits = fits && cells(lines[end + 1]) <= width;
        if (fits) {
            folded += lines[i];
            continue;
        }
        std::string paragraph(lines[i]);
        for (; i < end; ++i) paragraph += fmt::format(" {}", lines[i + 1]);
        folded += fold_line(read_line(paragraph), options_column, width);
    }
    return folded;
}

}  // namespace muster
