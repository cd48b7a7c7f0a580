// The report's page: renders its document as HTML that needs nothing else, and as Markdown and CSV.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "bench/report/figure_text.hpp"
#include "bench/report/report_document.hpp"
#include "bench/report/report_figures.hpp"

namespace muster {

/// The page's template and plots.py, as they were when this program was built.
std::span<embedded_text const> report_templates() noexcept;

/// One page, with the figures in it; without any it has its tables, and says why and how to draw. Every text from outside is escaped. Pure, as are
/// the others.
std::string report_html(report_document const& document, report_figures const& figures = {});
std::string report_markdown(report_document const& document);
/// A line of names and one for each number of ranks of each study: label, ranks, speed-up, and median, ends of the spread and count of each
/// metric. A report of collectives alone has lines of sizes.
std::string report_csv(report_document const& document);

// The texts of a report that HTML and Markdown have in common: tiles, the table's cells, the runs. `at` is the place of the study, or of the table, in the JSON.

struct report_tile {
    std::string kind, value, what;  ///< value and what in the markup asked for
};

struct report_table {
    std::vector<std::string> head;  ///< plain text
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> keys = {};  ///< of the columns, for the page's style; none: a column has no style
};

/// The best point, then the worst news, as the summary has them. Pure, as are all here.
std::vector<report_tile> tiles_of(study_summary const& study, json_place const& at, markup how);
/// One row for each number of ranks; the last column is the note.
report_table scaling_table_of(study_summary const& study, json_place const& at, markup how);
/// One row for each metric but the judged one, one column for each number of ranks: medians. The last column is empty.
report_table metrics_table_of(study_summary const& study, json_place const& at, markup how);
/// What the base of the speed-ups is; "" without one.
std::string base_text(study_summary const& study, json_place const& at, markup how);
/// One row for each number of ranks of any study: judged metric, speed-up and efficiency of each. The last column is empty.
report_table side_by_side(report_document const& document, markup how);
/// One row for each size and one column for each curve of a table of collectives: bus bandwidth. It has no note.
report_table busbw_table_of(busbw_table const& table, json_place const& at, markup how);
/// Tables with one row for each run: what it was, with a note in the last column, and its other metrics.
std::vector<report_table> runs_tables_of(study_summary const& study, json_place const& at, markup how);

// `muster-bench report`: writes table, JSON, CSV, Markdown and HTML page of scaling studies.

extern command_row const report_row;

/// Returns the exit code; throws muster::error.
int report_command(given_options const& given, environment const& variables);

/// Which files of a report are wanted.
struct report_files {
    std::filesystem::path folder;                       ///< of report.html, summary.json and plots.py
    bool page = true;                                   ///< false: summary.json alone, and what `figures` asks for
    std::optional<std::filesystem::path> figures = {};  ///< where figures must come; nothing: FOLDER/figures if there is a page
};

/// Writes FOLDER/summary.json and, with a page, FOLDER/plots.py, which draws the figures where Matplotlib is, and FOLDER/report.html, and names
/// them on standard error. Throws errc::io, and errc::unavailable if figures are asked for that cannot be drawn.
void write_report(report_document const& document, report_files const& wanted, environment const& variables);

}  // namespace muster
