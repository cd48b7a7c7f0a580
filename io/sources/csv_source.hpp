// CSV files: reads a row a sample, a column of labels among columns of numbers.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/sources/csv_lines.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

/// The first that a file has, in upper or lower case, is its column of labels.
inline constexpr std::array<std::string_view, 8> csv_label_names{"label", "labels",  "class",    "target",
                                                                 "y",     "species", "category", "variety"};

/// Columns are divided by commas, or by semicolons or tabs where the first line has no comma; a field may stand in double quotes.
/// Empty lines are passed over. A sample is a row of numbers. All labels are numbers, or all are names, which are numbered in order of
/// name. Opening goes through the whole file once, for its rows and its labels. A fault is shown with line, column and caret.
class csv_source : public sample_source {
  public:
    csv_source(std::string path, source_options const& options);
    std::vector<std::string> files() const override { return {path_}; }
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override;
    label_scan scan_labels() override { return scan_; }
    void look_at(hyperslab rows, std::span<std::int32_t> damaged) override;
    void take_targets() override { kind_ = label_kind::target; }
    void order_columns(std::vector<std::string> const& names) override;
    [[noreturn]] void fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const override;

  private:
    static constexpr std::size_t of_label = SIZE_MAX;
    static constexpr std::size_t not_taken = SIZE_MAX - 1;

    /// A label and where it stands, so that it can be shown later.
    struct seen {
        std::string row;
        std::size_t line = 0;
        std::size_t column = 0;
        std::string text;
        std::size_t count = 0;  ///< of its kind
    };
    struct label_index;

    void read_beginning(source_options const& options);
    void refuse_file_names(std::string_view row, std::size_t line, source_options const& options) const;
    bool is_header(std::vector<std::string> const& first, std::vector<std::string> const& second,
                   source_options const& options) const;
    void find_label_column(source_options const& options);
    void choose_columns(source_options const& options);
    std::size_t column_of(std::string const& wanted, std::string_view option) const;
    void index(std::optional<label_kind> asked);
    void note_label(std::string_view text, std::string_view row, std::size_t column, label_index& labels) const;
    void refuse_dates(label_index const& labels) const;
    void settle_labels(label_index const& labels);
    std::uint32_t label_of(std::string_view field, std::string_view row) const;
    void parse_row(std::string_view row, std::uint8_t* elements, std::uint32_t* label);
    void note_rounding(std::string_view text, std::string_view row, std::size_t column, std::uint8_t const* stored);
    [[noreturn]] void fail_feature(std::string_view text, std::string_view row, std::size_t column, std::size_t place) const;
    [[noreturn]] void fail(std::string_view row, std::size_t column, std::string_view message) const;
    [[noreturn]] void fail(seen const& at, std::string_view message) const;
    [[noreturn]] void fail_cell(std::string_view row, std::size_t column, std::string_view message) const;
    [[noreturn]] void fail_cell(seen const& at, std::string_view message) const;

    std::string path_;
    csv_lines lines_;
    char separator_ = ',';
    std::size_t columns_ = 0;
    std::vector<std::string> names_;  ///< of the columns; empty without a header
    std::string first_row_;           ///< that was taken for data
    std::optional<std::size_t> label_column_;
    bool label_guessed_ = false;      ///< by its name
    std::vector<std::size_t> slots_;  ///< of each column: where in a sample its number goes, or of_label, or not_taken
    label_kind kind_ = label_kind::number;
    label_scan scan_;
    csv_place first_;               ///< the first row with a sample
    std::vector<csv_place> marks_;  ///< of samples 0, step, 2 * step …
    std::size_t next_sample_ = 0;   ///< that lines_ gives; SIZE_MAX: it stands elsewhere
    std::string buffer_;
};

}  // namespace muster
