// `muster-bench report`: writes table, JSON, CSV, Markdown and HTML page of scaling studies.
#pragma once

#include <filesystem>
#include <string>

#include "base/command/command_set.hpp"
#include "bench/report/report_document.hpp"

namespace muster {

extern command_row const report_row;

/// Returns the exit code; throws muster::error.
int report_command(given_options const& given);

/// Writes FOLDER/report.html; returns its path. Throws errc::io.
std::string write_html_report(report_json const& document, std::filesystem::path const& folder);

}  // namespace muster
