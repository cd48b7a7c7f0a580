// CSV files: reads a line a sample, a column of labels among columns of numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

/// Columns are divided by commas, or by semicolons or tabs where the first line has no comma; a field may stand in double quotes.
/// Empty lines are passed over. A sample is a row of 1 x 1 x its numbers. Labels are whole numbers, or names: these are numbered
/// in order of name. Opening goes through the whole file once, for its lines and its labels. A fault is shown with line, column and
/// caret.
class csv_source : public sample_source {
  public:
    csv_source(std::string path, source_options const& options);
    std::vector<std::string> files() const override { return {path_}; }
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override;
    std::uint32_t largest_label() override { return largest_; }
    [[noreturn]] void fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const override;

  private:
    /// A place from which lines are counted: every so many samples one is kept.
    struct mark {
        std::uint64_t offset = 0;
        std::size_t line = 0;
    };
    struct reader;

    void read_beginning(source_options const& options);
    void find_label_column(std::vector<std::string> const& names, source_options const& options);
    void index();
    void note_label(std::string_view text, std::string_view line, std::size_t number, std::size_t& numbers);
    std::uint32_t label_of(std::string_view field, std::string_view line, std::size_t number) const;
    void parse_line(std::string_view line, std::size_t number, std::uint8_t* elements, std::uint32_t* label) const;
    [[noreturn]] void fail(std::string_view line, std::size_t number, std::size_t column, std::string_view message) const;

    std::string path_;
    std::uint64_t bytes_ = 0;
    unique_fd fd_;  // opening it sets bytes_
    char separator_ = ',';
    std::size_t columns_ = 0;
    std::optional<std::size_t> label_column_;
    mark first_;               ///< the first line with a sample
    std::vector<mark> marks_;  ///< of samples 0, step, 2 * step …
    std::uint32_t largest_ = 0;
};

}  // namespace muster
