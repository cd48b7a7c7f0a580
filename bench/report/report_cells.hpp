// The texts of a report that HTML and Markdown have in common: tiles, the table's cells, the runs. Written from the document alone.
#pragma once

#include <string>
#include <vector>

#include "bench/report/figure_text.hpp"

namespace muster {

struct report_tile {
    std::string kind, value, what;  ///< value and what in the markup asked for
};

struct report_table {
    std::vector<std::string> head;  ///< plain text
    std::vector<std::vector<std::string>> rows;
};

/// The worst news first, as the summary has them. Pure, as are all here.
std::vector<report_tile> tiles_of(report_json const& document, json_place const& study, markup how);
/// One row for each number of ranks; the last column is the note.
report_table scaling_table_of(report_json const& document, json_place const& study, markup how);
/// One row for each metric but the judged one, one column for each number of ranks: medians. The last column is empty.
report_table metrics_table_of(report_json const& document, json_place const& study, markup how);
/// What the base of the speed-ups is; "" without one.
std::string base_text(report_json const& document, json_place const& study, markup how);
/// One row for each run; the last column is the note.
report_table runs_table_of(report_json const& document, json_place const& study, markup how);

}  // namespace muster
