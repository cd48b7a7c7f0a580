// `muster-bench report`: writes table, JSON and HTML page of a scaling study.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "bench/scaling/scale_request.hpp"
#include "bench/study/study.hpp"

namespace muster {

extern command_row const report_row;

/// Returns the exit code; throws muster::error.
int report_command(given_options const& given, environment const& variables);

/// Prints a line for each expectation and for each number of ranks of the baseline. Returns whether none is broken.
bool print_judgements(study const& results, study_demands const& demands, study const* baseline);

/// Draws the plots and writes FOLDER/report.html; returns its path. Throws what draw_svg throws, and errc::io.
std::string write_html_report(study const& results, std::string const& folder, environment const& variables);

}  // namespace muster
