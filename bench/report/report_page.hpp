// The report's page: renders its document as HTML that needs nothing else, and as Markdown and CSV.
#pragma once

#include <span>
#include <string>

#include "base/embedded_text.hpp"
#include "bench/report/figure_text.hpp"

namespace muster {

/// The page's template, as it was when this program was built.
std::span<embedded_text const> report_templates() noexcept;

/// One page. Every text from outside is escaped. Pure, as are the others.
std::string report_html(report_json const& document);
std::string report_markdown(report_json const& document);
/// A line of names and one for each number of ranks of each study: label, ranks, speed-up, and median, ends of the spread and count of each
/// metric. A report of collectives alone has lines of sizes.
std::string report_csv(report_json const& document);

}  // namespace muster
