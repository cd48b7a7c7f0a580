// The page of `muster top`: a run's samples as lines of text for a given width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/samples/run_samples.hpp"

namespace muster {

/// With more ranks than this, a page begins with a line for each host in place of one for each rank.
inline constexpr std::size_t most_single_ranks = 256;
/// Returns whether it has more. Pure.
bool has_many_ranks(run_samples const& samples);

struct top_view {
    std::size_t width = 80;  ///< of the terminal; no line is wider
    bool by_host = false;
    std::string host;        ///< show the ranks of this host only; empty: all
    double now = 0;          ///< in seconds since 1970
    std::size_t notes = 20;  ///< the most lines of notes
};

struct top_line {
    std::string text;
    bool is_odd = false;
    bool operator==(top_line const&) const = default;
};

struct top_page {
    std::vector<std::string> header;
    std::string titles;
    std::vector<top_line> rows;      ///< odd ones first
    std::vector<std::string> notes;  ///< what is odd, and why
};

/// Returns the page. Lines hold printable text only (cells.hpp), whatever the samples hold. Columns that do not fit are left out, the less
/// important first, as are those of which no rank has a value; the widths do not depend on values that change. Pure.
top_page make_top_page(run_samples const& samples, top_view const& view);

/// Returns the whole page as text, in lines. Pure.
std::string text_of(top_page const& page);

}  // namespace muster
