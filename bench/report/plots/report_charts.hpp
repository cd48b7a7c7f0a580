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

// Plots of a study in strips: draws the parts of the time, and a metric of each rank in each run, as SVG.

/// A stacked bar for each number of ranks, of the parts that its metrics tell; "" where no row has two of them. `study` is the place of a
/// study's summary in the document. Pure.
std::string draw_time_parts(report_json const& document, json_place const& study);
std::string time_parts_legend(report_json const& document, json_place const& study);

/// A cell for each rank and run; its colour says by how much the rank lies above or below the median of its run. "" where fewer than two
/// ranks told a metric. Pure.
std::string draw_by_rank(report_json const& document, json_place const& study);

/// The largest part by which a rank differs from the median of its run, which has the full colour; at least 0.05. Pure.
double full_colour_of(report_json const& by_rank);

}  // namespace muster
