// `muster-bench report`: writes table, JSON, CSV, Markdown, HTML page and figures of scaling studies.
#pragma once

#include <filesystem>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "bench/report/report_document.hpp"

namespace muster {

extern command_row const report_row;

/// Returns the exit code; throws muster::error.
int report_command(given_options const& given, environment const& variables);

/// Writes FOLDER/summary.json and, with a `page`, FOLDER/plots.py, which draws FOLDER/figures where Matplotlib is, and FOLDER/report.html, and
/// names them on standard error. Throws errc::io.
void write_report(report_document const& document, std::filesystem::path const& folder, bool page, environment const& variables);

}  // namespace muster
