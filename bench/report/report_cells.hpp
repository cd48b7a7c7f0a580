// The cells of a report: writes the texts that HTML and Markdown have in common, tiles, tables and runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/report/report_document.hpp"

namespace muster {

struct report_tile {
    std::string_view kind;
    std::string value, what;
};

struct report_table {
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> keys = {};  ///< of the columns, for the page's style; none: a column has no style
};

/// The best point, then the worst news, as the summary has them. Pure, as are all here.
std::vector<report_tile> tiles_of(study_summary const& study);
/// One row for each number of ranks; the last column is the note.
report_table scaling_table_of(study_summary const& study);
/// One row for each metric but the judged one, one column for each number of ranks: medians. The last column is empty.
report_table metrics_table_of(study_summary const& study);
/// Says what the base of the speed-ups is; "" without one.
std::string base_text(study_summary const& study);
/// One row for each number of ranks of any study: judged metric, speed-up and efficiency of each. The last column is empty.
report_table side_by_side(report_document const& document);
/// "allreduce f32 on 4 ranks".
std::string busbw_title(busbw_table const& table);
/// One row for each size and one column for each curve of a table of collectives: bus bandwidth. It has no note.
report_table busbw_table_of(busbw_table const& table);
/// Tables with one row for each run: what it was, with a note in the last column, and its other metrics.
std::vector<report_table> runs_tables_of(study_summary const& study);

}  // namespace muster
