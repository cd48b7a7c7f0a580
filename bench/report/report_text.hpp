// The report as Markdown and CSV.
#pragma once

#include <string>

#include "bench/report/report_document.hpp"

namespace muster {

/// Pure, as the other.
std::string report_markdown(report_document const& document);
/// A line of names and one for each number of ranks of each study: label, ranks, speed-up, and median, ends of the spread and count of each
/// metric. A report of collectives alone has lines of sizes.
std::string report_csv(report_document const& document);

}  // namespace muster
