// The charts of a report: chooses from its document what each of them shows.
#pragma once

#include <string>
#include <vector>

#include "bench/report/figure_text.hpp"

namespace muster {

struct report_chart {
    std::string title, svg, legend, caption;  ///< svg and legend are HTML, the others plain text
};

/// Time or rate, speed-up and efficiency of all studies that are judged by the same metric, side by side. Pure.
std::vector<report_chart> scaling_charts(report_json const& document);
/// Parts of the time and each rank's metric, of one study. Pure.
std::vector<report_chart> study_charts(report_json const& document, json_place const& study);
/// Bus bandwidth against size, one for each table of collectives. Pure.
std::vector<report_chart> busbw_charts(report_json const& document);
/// The published table's speed-ups, labelled as what they are. Pure.
report_chart published_chart();

}  // namespace muster
