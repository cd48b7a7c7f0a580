// The report's plots: writes gnuplot scripts and draws them as SVG.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

/// gnuplot scripts that print one SVG each. They hold only our own words, names of metrics and numbers. At least one row has the
/// judged metric. Pure.
std::string speedup_script(std::vector<scaling_row> const& rows, int cores);
/// The judged metric with its spread, of the rows that have it.
std::string judged_script(std::vector<scaling_row> const& rows, judged_metric const& judged);
std::string time_split_script(std::vector<scaling_row> const& rows);
/// The published table's speed-ups, labelled as what they are.
std::string published_script();

/// Runs a script; the result is an <svg> element fit to stand within HTML. Throws errc::unavailable naming the package if there
/// is no gnuplot, and errc::library with what gnuplot said if it failed.
std::string draw_svg(std::string const& script, environment const& variables);

}  // namespace muster
