// Markdown, line by line.
#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "base/manual/roff.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

/// A pair of marks around letters of a kind: `code` is bold.
struct span_mark {
    std::string_view mark;
    char font;
};
constexpr std::array span_marks{span_mark{"`", 'B'}, span_mark{"**", 'B'}, span_mark{"*", 'I'}};

/// The roff of a span that begins at `at`, which is moved behind it; empty if none begins there.
std::string span_at(std::string_view line, std::size_t& at) {
    for (auto const& [mark, font] : span_marks) {
        if (!line.substr(at).starts_with(mark)) continue;
        auto const begin = at + mark.size();
        auto const end = line.find(mark, begin);
        if (end == line.npos || end == begin) continue;
        at = end + mark.size();
        return fmt::format("\\f{}{}\\fR", font, roff_quote(line.substr(begin, end - begin)));
    }
    if (line[at] != '[') return {};
    auto const middle = line.find("](", at);
    auto const end = line.find(')', middle == line.npos ? at : middle);
    if (middle == line.npos || end == line.npos) return {};
    auto const begin = std::exchange(at, end + 1) + 1;
    return roff_quote(line.substr(begin, middle - begin));
}

std::string roff_of_line(std::string_view line) {
    std::string written;
    std::size_t plain = 0;
    for (std::size_t at = 0; at < line.size();) {
        auto const begin = at;
        auto const span = span_at(line, at);
        if (span.empty()) {
            ++at;
            continue;
        }
        written += roff_quote(line.substr(plain, begin - plain)) + span;
        plain = at;
    }
    return written + roff_quote(line.substr(plain));
}

class markdown_writer {
  public:
    void take(std::string_view line) {
        if (line.starts_with("```")) return fence();
        if (in_code_) return add(roff_quote(line));
        if (trim(line).empty()) return end_block();
        if (line.starts_with("<!--")) return;
        if (line.starts_with('#')) return heading(line);
        if (line.starts_with('|')) return table_row(line);
        if (line.starts_with("- ")) return item(line.substr(2));
        paragraph(trim(line));
    }
    std::string text() && { return std::move(text_); }

  private:
    void add(std::string_view line) { text_ += fmt::format("{}\n", line); }

    void fence() {
        if (!in_code_) begin_block();
        add(in_code_ ? ".EE" : ".EX");
        in_code_ = !in_code_;
    }

    void heading(std::string_view line) {
        end_block();
        add(fmt::format(".SS \"{}\"", roff_quote(trim(line.substr(line.find_first_not_of('#'))))));
        is_fresh_ = true;
    }

    /// The header and the line of dashes below it are no rows.
    void table_row(std::string_view line) {
        std::vector<std::string_view> cells;
        for (auto const cell : split(trim(line.substr(1)), '|')) cells.push_back(trim(cell));
        if (cells.back().empty()) cells.pop_back();
        if (++table_rows_ == 1) columns_.assign(cells.begin(), cells.end());
        if (table_rows_ < 3 || cells.empty()) return;
        add(".TP");
        add(roff_of_line(cells[0]));
        std::string rest;
        for (std::size_t i = 1; i < cells.size(); ++i) {
            if (cells[i].empty()) continue;
            if (i > 1 && i < columns_.size()) rest += fmt::format(". {}: ", roff_quote(columns_[i]));
            rest += roff_of_line(cells[i]);
        }
        if (!rest.empty()) add(rest + ".");
        is_fresh_ = false;
    }

    void item(std::string_view text) {
        add(".IP \\(bu 2");
        add(roff_of_line(text));
        in_block_ = true;
        is_fresh_ = false;
    }

    void paragraph(std::string_view line) {
        begin_block();
        add(roff_of_line(line));
    }

    void begin_block() {
        if (!in_block_ && !is_fresh_) add(".PP");
        in_block_ = true;
        is_fresh_ = false;
    }
    void end_block() {
        in_block_ = false;
        table_rows_ = 0;
    }

    std::string text_;
    std::vector<std::string> columns_;  ///< of the table under way
    int table_rows_ = 0;
    bool in_code_ = false;
    bool in_block_ = false;
    bool is_fresh_ = true;  ///< nothing stands between this and the heading: no paragraph needs to be begun
};

}  // namespace

std::string roff_of_markdown(std::string_view markdown) {
    markdown_writer writer;
    for (auto const line : split(markdown, '\n')) writer.take(line);
    return std::move(writer).text();
}

}  // namespace muster
