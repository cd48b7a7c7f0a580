// The charts of a report: chooses from its document what each of them shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/report/figure_text.hpp"
#include "bench/report/plots/curve_plot.hpp"

namespace muster {

struct report_chart {
    std::string title, svg;  ///< svg is HTML, the others are plain text
    std::vector<legend_entry> legend;
    std::string caption;
};

/// Studies that are judged by the same metric and whose work depends on the ranks in the same way, each by its place among all.
std::vector<std::vector<std::size_t>> groups_of(report_json const& document);
/// Time or rate, speed-up and efficiency of each group, groups next to each other. Pure.
std::vector<report_chart> scaling_charts(report_json const& document);
/// Parts of the time and each rank's metric, of one study. Pure.
std::vector<report_chart> study_charts(report_json const& document, json_place const& study);
/// Bus bandwidth against size, one for each table of collectives. Pure.
std::vector<report_chart> busbw_charts(report_json const& document);
/// The published table's speed-ups, labelled as what they are. Pure.
report_chart published_chart();
/// All of them, in the order of the page. Pure.
std::vector<report_chart> all_charts(report_json const& document);

struct written_figures {
    std::vector<std::string> files;
    bool pdf = true;  ///< false: rsvg-convert is not there
};
/// Each chart as FOLDER/NAME.svg, and by rsvg-convert as NAME.pdf. Throws errc::io.
written_figures write_figures(report_json const& document, std::filesystem::path const& folder, environment const& variables);

// Plots of a study in strips: draws the parts of the time, and a metric of each rank in each run, as SVG.

/// A stacked bar for each number of ranks, of the parts that its metrics tell; "" where no row has two of them. `study` is the place of a
/// study's summary in the document. Pure.
std::string draw_time_parts(report_json const& document, json_place const& study);
std::vector<legend_entry> time_parts_legend(report_json const& document, json_place const& study);

/// A cell for each rank and run; its colour says by how much the rank lies above or below the median of its run. "" where fewer than two
/// ranks told a metric. Pure.
std::string draw_by_rank(report_json const& document, json_place const& study);

/// The largest part by which a rank differs from the median of its run, which has the full colour; at least 0.05. Pure.
double full_colour_of(report_json const& by_rank);

}  // namespace muster
