// `muster-bench report`: writes table, JSON, CSV, Markdown, HTML page and figures of scaling studies.
#pragma once

#include <filesystem>
#include <optional>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "bench/report/report_document.hpp"

namespace muster {

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
