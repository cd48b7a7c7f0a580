// The rows of a CSV file, plain or gzip-compressed: reads them one after the other, and cuts them into fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/arrays/byte_source.hpp"

namespace muster {

/// Says where a row begins.
struct csv_place {
    std::uint64_t offset = 0;  ///< in the uncompressed stream
    std::size_t line = 1;
    bool operator==(csv_place const&) const = default;
};

/// Goes through a file from its beginning on, behind a byte order mark. A row ends with its line, unless that is inside of double quotes.
/// Throws errc::invalid_data for text of UTF-16, for a quote that is not closed, and for a row that is too long.
class csv_lines {
  public:
    csv_lines(std::string path, char separator);

    /// The next row that is not blank, without its end; nothing at the end of the file. Good until the next call.
    std::optional<std::string_view> next();

    csv_place const& place() const noexcept { return place_; }  ///< of the row that next() gave last

    /// Goes to a row, forward where that is possible: next() gives it.
    void go_to(csv_place const& place);

    void set_separator(char separator) noexcept { separator_ = separator; }

  private:
    void begin();
    std::size_t end_of_row();
    bool refill();

    std::string path_;
    char separator_;  ///< 0: not known yet
    byte_source from_;
    std::string text_;
    std::size_t position_ = 0;
    std::size_t line_ = 1;  ///< of what is at position_
    csv_place place_;
};

/// ',' where the row has one outside of quotes, else ';', else a tab; a tab first where `prefers_tabs`.
char separator_of(std::string_view row, bool prefers_tabs);

/// Calls each(field, its offset in the row, its number); stops where that returns false. A quote counts at the beginning of a field.
template <typename Each>
void each_field(std::string_view row, char separator, Each&& each) {
    std::size_t begin = 0;
    for (std::size_t number = 0;; ++number) {
        std::size_t end = begin;
        while (end < row.size() && row[end] == ' ') ++end;
        if (end < row.size() && row[end] == '"') {
            bool quoted = false;
            while (end < row.size() && (quoted || row[end] != separator)) quoted ^= row[end++] == '"';
        } else {
            while (end < row.size() && row[end] != separator) ++end;
        }
        if (!each(row.substr(begin, end - begin), begin, number) || end == row.size()) return;
        begin = end + 1;
    }
}

/// The text of a field: without blanks around it and without its quotes, "" inside of them as one. It may lie in `buffer`.
std::string_view unquoted(std::string_view field, std::string& buffer);

}  // namespace muster
