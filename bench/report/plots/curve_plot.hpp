// Plots of points with spreads over ranks or sizes: draws them as SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/figure_text.hpp"

namespace muster {

enum class point_mark { plain, oversubscribed, simulated };

struct curve_point {
    double x = 1, y = 1, low = 1, high = 1;  ///< low and high are y where there is no spread
    point_mark mark = point_mark::plain;
    json_place at;                           ///< of y in the report's JSON
    std::optional<shown_rounding> rounding;  ///< nothing: the point has no label
};

struct plot_curve {
    std::string name;
    std::vector<curve_point> points;
    bool joined = false;  ///< a model, or so many points that a line shows their order
};

struct plot_axis {
    std::string title;
    bool logarithmic = false;
    bool binary = false;                  ///< ticks of a logarithmic axis are powers of two
    bool bytes = false;                   ///< ticks are sizes
    std::vector<double> ticks;            ///< none: chosen
    std::vector<std::string> below = {};  ///< a second line below each of `ticks`; none: there is no such line
    bool from_zero = false;
};

struct curve_plot {
    std::string title;
    plot_axis x, y;
    std::vector<plot_curve> curves;  ///< measured; coloured in their order
    std::vector<plot_curve> models;  ///< lines below them: ideal, bound
};

/// An <svg> element, 400 by 280 units; "" where there is no point. Labels touch neither points nor each other; one without a place is left
/// out. Figures of labels name their values in `document`. Pure.
std::string draw(curve_plot const& plot, report_json const& document);

/// Whether a spread reaches so far beyond the points that it leaves the plot, where an arrow ends it.
bool leaves_plot(curve_plot const& plot) noexcept;

/// What a colour or mark means.
struct legend_entry {
    enum class mark { dot, circle, square, frame, dashes, dots } shape = mark::dot;
    std::string colour, name;
};
std::vector<legend_entry> legend(curve_plot const& plot);
/// For the page.
std::string legend_html(std::vector<legend_entry> const& entries);
/// A drawing of the page as a file that stands alone, its legend below.
std::string standalone_svg(std::string const& svg, std::vector<legend_entry> const& entries);

/// The colours of curves, in order.
std::string curve_colour(std::size_t index);

}  // namespace muster
