#include "io/sources/csv_lines.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t longest_row = std::size_t{64} << 20;

}  // namespace

csv_lines::csv_lines(std::string path, char separator) : path_(std::move(path)), separator_(separator), from_(path_) {
    begin();
}

void csv_lines::begin() {
    text_.clear();
    position_ = 0;
    line_ = 1;
    refill();
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff"))
        throw_error(errc::invalid_data, "{}: text of UTF-16; save it as UTF-8, as `iconv -f UTF-16 -t UTF-8` does", path_);
    if (text_.starts_with("\xef\xbb\xbf")) position_ = 3;
}

bool csv_lines::refill() {
    text_.erase(0, position_);
    position_ = 0;
    if (text_.size() > longest_row)
        throw_error(
            errc::invalid_data,
            "{}:{}: a row of more than {} bytes: a quote that is not closed, or no CSV file; correct it, or give another one",
            path_, line_, longest_row);
    std::size_t const old = text_.size();
    text_.resize(old + static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, from_.size().value_or(piece_bytes))));
    std::size_t const got = from_.read({reinterpret_cast<std::uint8_t*>(text_.data()) + old, text_.size() - old});
    text_.resize(old + got);
    return got > 0;
}

/// Returns where the row at position_ ends in text_: before its line feed, or at the end of the file. Each byte is looked at once.
std::size_t csv_lines::end_of_row() {
    std::size_t searched = 0;  // bytes of the row
    bool quoted = false, at_begin = true;
    for (;;) {
        std::size_t const found = text_.find('\n', position_ + searched);
        std::size_t const end = std::min(found, text_.size());
        std::string_view const part = std::string_view(text_).substr(position_ + searched, end - position_ - searched);
        if (quoted || part.find('"') != std::string_view::npos || found == std::string::npos)
            for (char const c : part) {
                if (c == '"' && (quoted || at_begin))
                    at_begin = quoted, quoted = !quoted;  // after a closing one another one opens again: "" stands for a quote
                else if (!quoted)
                    at_begin =
                        c == separator_ || (separator_ == 0 && (c == ',' || c == ';' || c == '\t')) || (at_begin && c == ' ');
            }
        searched = end - position_;
        if (found == std::string::npos && refill()) continue;
        if (found == std::string::npos && quoted)
            throw_error(errc::invalid_data, "{}:{}: a double quote that is not closed; correct the line", path_, line_);
        if (found == std::string::npos || !quoted) return position_ + searched;
        ++searched;  // the line feed is part of a field
    }
}

std::optional<std::string_view> csv_lines::next() {
    for (;;) {
        std::size_t const end = end_of_row();
        if (position_ == text_.size()) return std::nullopt;
        std::string_view row(text_.data() + position_, end - position_);
        place_ = {from_.offset() - (text_.size() - position_), line_};
        line_ += 1 + static_cast<std::size_t>(std::count(row.begin(), row.end(), '\n'));
        position_ = std::min(end + 1, text_.size());
        if (row.ends_with('\r')) row.remove_suffix(1);
        if (row.find_first_not_of(separator_ == '\t' ? " \r" : " \r\t") != std::string_view::npos) return row;
    }
}

void csv_lines::go_to(csv_place const& place) {
    std::uint64_t const here = from_.offset() - (text_.size() - position_);
    if (place.offset < here) {
        from_ = byte_source(path_);
        begin();
    }
    std::uint64_t const loaded = from_.offset() - (text_.size() - position_);
    std::uint64_t const ahead = place.offset - std::min(place.offset, loaded);
    if (ahead <= text_.size() - position_) {
        position_ += static_cast<std::size_t>(ahead);
    } else {
        from_.skip(ahead - (text_.size() - position_));
        text_.clear();
        position_ = 0;
    }
    line_ = place.line;
}

char separator_of(std::string_view row, bool prefers_tabs) {
    bool quoted = false;
    bool comma = false, semicolon = false, tab = false;
    for (char const c : row) {
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        comma = comma || c == ',';
        semicolon = semicolon || c == ';';
        tab = tab || c == '\t';
    }
    if (prefers_tabs && tab) return '\t';
    return comma ? ',' : semicolon ? ';' : '\t';
}

std::string_view unquoted(std::string_view field, std::string& buffer) {
    field = trim(field);
    if (field.size() < 2 || field.front() != '"' || field.back() != '"') return field;
    field = field.substr(1, field.size() - 2);
    if (field.find('"') == std::string_view::npos) return field;
    buffer.clear();
    for (std::size_t i = 0; i < field.size(); ++i) {
        buffer += field[i];
        if (field[i] == '"' && i + 1 < field.size() && field[i + 1] == '"') ++i;
    }
    return buffer;
}

}  // namespace muster
