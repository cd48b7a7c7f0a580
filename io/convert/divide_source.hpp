// The division of one source into several splits: deals its samples out at random, each to one split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/sources/sample_source.hpp"

namespace muster {

/// A split and its part of the samples.
struct split_part {
    std::string name;
    double fraction = 0;
    bool operator==(split_part const&) const = default;
};

/// Parses "train=0.8,val=0.2". Throws parse_error (errc::usage) for other text, and errc::usage for fractions that do not make 1. Pure.
std::vector<split_part> parse_split_parts(std::string_view text);

/// Returns how many samples each part gets: its fraction of `samples`, rounded so that all of them have a place. Throws errc::usage if one gets none. Pure.
std::vector<std::size_t> counts_of_parts(std::vector<split_part> const& parts, std::size_t samples);

/// Some of the rows of a source, in their order: a bit for each.
class row_selection {
  public:
    explicit row_selection(std::vector<bool> const& chosen);
    std::size_t count() const noexcept { return count_; }
    /// The row that is the nth of those chosen; n < count().
    std::size_t row(std::size_t nth) const noexcept;

  private:
    std::vector<std::uint64_t> bits_;
    std::vector<std::size_t> before_;  ///< how many are chosen before each word
    std::size_t count_ = 0;
};

/// A selection for each count; they add up to the number of samples. The seed alone decides, by selection sampling (Knuth, The Art of Computer Programming,
/// volume 2, 3.4.2, algorithm S) with numbers of SplitMix64. Pure.
std::vector<row_selection> choose_rows(std::vector<std::size_t> const& counts, std::uint64_t seed);

/// The chosen samples of `whole`, in their order. `tells`: its notes about files that were left out are this split's; of several splits of one source one tells them.
std::unique_ptr<sample_source> selected_rows(std::unique_ptr<sample_source> whole, row_selection rows, bool tells);

}  // namespace muster
