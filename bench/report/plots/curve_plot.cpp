#include "bench/report/plots/curve_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/units.hpp"
#include "bench/report/plots/label_layout.hpp"

namespace muster {

namespace {

constexpr double plot_width = 400, plot_height = 280, plot_font = 13;
// Okabe and Ito.
constexpr char const* colours[]{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6470", "#8c6d31"};
constexpr char const* model_colours[]{"#8a929c", "#3c4149"};
constexpr char const* model_styles[]{"stroke=\"#8a929c\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"",
                                     "stroke=\"#3c4149\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\""};

/// Maps values to units of the drawing.
struct scale {
    bool logarithmic = false;
    double low = 0, high = 1, from = 0, to = 1;
    double operator()(double value) const {
        double const part = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
        return from + part * (to - from);
    }
};

struct value_range {
    double low = INFINITY, high = -INFINITY;
    void take(double value) { low = std::min(low, value), high = std::max(high, value); }
};

value_range range_of(curve_plot const& plot, double curve_point::*value) {
    value_range out;
    for (auto const* curves : {&plot.curves, &plot.models})
        for (auto const& curve : *curves)
            for (auto const& p : curve.points) out.take(p.*value);
    return out;
}

/// Of the points, and of their spreads as far as these do not press the points together.
value_range y_range_of(curve_plot const& plot) {
    auto out = range_of(plot, &curve_point::y);
    bool const logarithmic = plot.y.logarithmic;
    double const room =
        0.6 * std::max(out.high - (plot.y.from_zero ? std::min(out.low, 0.0) : out.low), 0.5 * std::abs(out.high));
    double const low = logarithmic ? out.low / 2 : out.low - room, high = logarithmic ? out.high * 2 : out.high + room;
    for (auto const& curve : plot.curves)
        for (auto const& p : curve.points) {
            out.take(std::max(p.low, low));
            out.take(std::min(p.high, high));
        }
    return out;
}

scale scale_of(plot_axis const& axis, value_range range) {
    auto [low, high] = range;
    if (axis.logarithmic) {
        double const room = std::pow(std::max(high / low, 1.5), 0.1);
        return {true, low / room, high * room};
    }
    if (axis.from_zero) low = std::min(low, 0.0);
    double const room = 0.12 * std::max(high - low, 1e-9 + std::abs(high) * 0.1);
    return {false, axis.from_zero && low == 0 ? 0 : low - room, high + room};
}

std::vector<double> linear_ticks(scale const& s) {
    double const rough = (s.high - s.low) / 5, decade = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * decade;
    for (double const m : {5.0, 2.0, 1.0})
        if (m * decade >= rough) step = m * decade;
    std::vector<double> out;
    for (double i = std::ceil(s.low / step); i * step <= s.high * (1 + 1e-9) && out.size() < 20; ++i) out.push_back(i * step);
    return out;
}

std::vector<double> log_ticks(scale const& s, bool binary) {
    std::vector<double> all;
    double const base = binary ? 2 : 10;
    std::vector<double> const steps = binary ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
    for (int k = static_cast<int>(std::floor(std::log(s.low) / std::log(base))); std::pow(base, k) <= s.high; ++k)
        for (double const m : steps)
            if (double const tick = m * std::pow(base, k); tick >= s.low && tick <= s.high) all.push_back(tick);
    if (all.size() <= 7) return all.size() < 2 ? linear_ticks(s) : all;
    std::vector<double> decades;
    for (double const tick : all) {
        double const k = std::log10(tick);
        if (binary || std::abs(k - std::round(k)) < 1e-9) decades.push_back(tick);
    }
    if (decades.size() < 3) return all;
    std::vector<double> out;
    auto const every = (decades.size() + 6) / 7;
    for (std::size_t i = 0; i < decades.size(); i += every) out.push_back(decades[i]);
    return out;
}

std::string tick_text(plot_axis const& axis, double value) {
    if (axis.bytes) return format_bytes(static_cast<std::uint64_t>(value));
    if (value == 0) return "0";
    if (axis.binary && value > 0 && value < 1) return fmt::format("1/{:g}", std::round(1 / value));
    return std::abs(value) >= 1e6 || std::abs(value) < 1e-4 ? fmt::format("{:.0e}", value) : fmt::format("{:g}", value);
}

std::string axis_title(plot_axis const& axis) {
    return axis.title + (axis.logarithmic ? " (log scale)" : "");
}

/// One drawing: the SVG so far, and what its labels must not touch.
class drawing {
  public:
    drawing(curve_plot const& plot, report_json const& document)
        : plot_(plot),
          document_(document),
          x_(scale_of(plot.x, range_of(plot, &curve_point::x))),
          y_(scale_of(plot.y, y_range_of(plot))),
          layout_({}) {
        y_ticks_ = plot.y.ticks;
        if (y_ticks_.empty()) y_ticks_ = y_.logarithmic ? log_ticks(y_, plot.y.binary) : linear_ticks(y_);
        double widest = 0;
        for (double const tick : y_ticks_) widest = std::max(widest, text_width(tick_text(plot.y, tick), plot_font));
        frame_ = {widest + 12, 30, plot_width - 12, plot_height - (plot.x.below.empty() ? 46 : 60)};
        x_.from = frame_.left;
        x_.to = frame_.right;
        y_.from = frame_.bottom;
        y_.to = frame_.top;
        layout_ = label_layout({frame_.left + 1, frame_.top + 1, frame_.right - 1, frame_.bottom - 1});
    }

    std::string draw() {
        svg_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" font-size=\"{}\">\n", plot_width,
                           plot_height, html_text(plot_.title), plot_font);
        draw_axes();
        for (std::size_t i = 0; i < plot_.models.size(); ++i)
            draw_model(plot_.models[i], model_styles[std::min<std::size_t>(i, 1)]);
        for (std::size_t i = 0; i < plot_.curves.size(); ++i) draw_curve(plot_.curves[i], i);
        for (std::size_t i = 0; i < plot_.curves.size(); ++i)
            for (auto const& point : plot_.curves[i].points) draw_label(point, shift(i));
        return svg_ + "</svg>";
    }

  private:
    /// Curves of several studies stand side by side at the same number of ranks.
    double shift(std::size_t curve) const {
        if (plot_.curves.size() < 2 || plot_.curves.front().joined) return 0;
        return (static_cast<double>(curve) - 0.5 * static_cast<double>(plot_.curves.size() - 1)) * 7;
    }

    void text(double x, double y, char const* anchor, std::string const& what, char const* colour) {
        svg_ +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour, what);
    }

    void line(double x0, double y0, double x1, double y1, std::string_view style) {
        svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x0, y0, x1, y1, style);
    }

    void draw_axes() {
        for (double const tick : y_ticks_) {
            double const y = y_(tick);
            line(frame_.left, y, frame_.right, y, "stroke=\"#e4e7eb\"");
            text(frame_.left - 6, y + 0.35 * plot_font, "end", tick_text(plot_.y, tick), "#3c4149");
        }
        line(frame_.left, frame_.top, frame_.left, frame_.bottom, "stroke=\"#8a8f98\"");
        line(frame_.left, frame_.bottom, frame_.right, frame_.bottom, "stroke=\"#8a8f98\"");
        auto ticks = plot_.x.ticks;
        if (ticks.empty()) ticks = x_.logarithmic ? log_ticks(x_, plot_.x.binary) : linear_ticks(x_);
        double free = 0, free_below = 0;
        for (std::size_t i = 0; i < ticks.size(); ++i) {
            double const tick = ticks[i];
            if (i < plot_.x.below.size()) tick_below(x_(tick), plot_.x.below[i], free_below);
            double const x = x_(tick), half = text_width(tick_text(plot_.x, tick), plot_font) / 2;
            line(x, frame_.bottom, x, frame_.bottom + 4, "stroke=\"#8a8f98\"");
            if (x - half < free || x + half > plot_width) continue;
            text(x, frame_.bottom + 18, "middle", tick_text(plot_.x, tick), "#3c4149");
            free = x + half + 4;
        }
        text(4, 16, "start", html_text(axis_title(plot_.y)), "#3c4149");
        text((frame_.left + frame_.right) / 2, plot_height - 8, "middle", html_text(axis_title(plot_.x)), "#3c4149");
    }

    /// The second line below a tick, where it has room.
    void tick_below(double x, std::string const& what, double& free) {
        double const half = text_width(what, plot_font) / 2;
        x = std::clamp(x, half, plot_width - half);
        if (x - half < free) return;
        text(x, frame_.bottom + 33, "middle", html_text(what), "#3c4149");
        free = x + half + 4;
    }

    /// A spread up to the end at `y`, which may lie beyond the frame.
    void whisker_end(double x, double y, std::string_view stroke) {
        double const inside = std::clamp(y, frame_.top, frame_.bottom);
        if (inside == y) return line(x - 4, y, x + 4, y, stroke);
        double const back = inside + (y < inside ? 6 : -6);
        for (double const side : {-4.0, 4.0}) line(x + side, back, x, inside, stroke);
    }

    void draw_model(plot_curve const& model, std::string_view style) {
        for (std::size_t i = 1; i < model.points.size(); ++i) {
            double const x0 = x_(model.points[i - 1].x), y0 = y_(model.points[i - 1].y), x1 = x_(model.points[i].x),
                         y1 = y_(model.points[i].y);
            line(x0, y0, x1, y1, style);
            layout_.add_line(x0, y0, x1, y1);
        }
    }

    void draw_curve(plot_curve const& curve, std::size_t index) {
        auto const colour = curve_colour(index);
        auto const stroke = fmt::format("stroke=\"{}\" stroke-width=\"1.5\"", colour);
        for (std::size_t i = 0; i < curve.points.size(); ++i) {
            auto const& p = curve.points[i];
            double const x = x_(p.x) + shift(index), y = y_(p.y), low = y_(p.low), high = y_(p.high);
            if (curve.joined && i > 0) line(x_(curve.points[i - 1].x), y_(curve.points[i - 1].y), x, y, stroke);
            if (low - high > 1) {
                double const above = std::max(high, frame_.top), below = std::min(low, frame_.bottom);
                line(x, below, x, above, stroke);
                for (double const end : {low, high}) whisker_end(x, end, stroke);
                layout_.take({x - 4, above - 1, x + 4, below + 1});
            }
            double const r = curve.joined ? 2.5 : 4.5;
            svg_ += p.mark == point_mark::simulated
                        ? fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\" fill=\"#fff\" {}/>\n", x - 4,
                                      y - 4, stroke)
                        : fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" {}/>\n", x, y, r,
                                      p.mark == point_mark::oversubscribed ? "#fff" : colour, stroke);
            layout_.take({x - r - 1, y - r - 1, x + r + 1, y + r + 1});
        }
    }

    void draw_label(curve_point const& p, double shifted) {
        if (!p.rounding) return;
        figure_text what(document_, markup::html), plain(document_, markup::plain);
        auto const add = [&](figure_text& to) {
            to.figure(p.at, *p.rounding);
            if (p.rounding->scale == 100) to.words("%");
            if (p.mark == point_mark::simulated) to.words(" simulated");
        };
        add(what);
        add(plain);
        auto const place = layout_.place(x_(p.x) + shifted, y_(p.y), plain.text(), plot_font);
        if (!place) return;
        auto inner = what.text();  // an SVG text holds tspans
        for (auto const& [from, to] : {std::pair<std::string, std::string>{"<span ", "<tspan "}, {"</span>", "</tspan>"}})
            for (std::size_t at = 0; (at = inner.find(from, at)) != std::string::npos; at += to.size())
                inner.replace(at, from.size(), to);
        svg_ += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#20262e\">{}</text>\n",
                            place->x, place->y + 0.35 * plot_font, inner);
    }

    curve_plot const& plot_;
    report_json const& document_;
    scale x_, y_;
    label_layout layout_;
    plot_box frame_;
    std::vector<double> y_ticks_;
    std::string svg_;
};

bool has_mark(curve_plot const& plot, point_mark mark) {
    return std::any_of(plot.curves.begin(), plot.curves.end(), [&](auto const& curve) {
        return std::any_of(curve.points.begin(), curve.points.end(), [&](auto const& p) { return p.mark == mark; });
    });
}

}  // namespace

std::string curve_colour(std::size_t index) {
    return colours[index % std::size(colours)];
}

std::string draw(curve_plot const& plot, report_json const& document) {
    bool const any = std::any_of(plot.curves.begin(), plot.curves.end(), [](auto const& each) { return !each.points.empty(); });
    return any ? drawing(plot, document).draw() : std::string();
}

bool leaves_plot(curve_plot const& plot) noexcept {
    auto const shown = scale_of(plot.y, y_range_of(plot));
    return std::ranges::any_of(plot.curves, [&](auto const& curve) {
        return std::ranges::any_of(curve.points, [&](auto const& p) { return p.high > shown.high || p.low < shown.low; });
    });
}

std::vector<legend_entry> legend(curve_plot const& plot) {
    using mark = legend_entry::mark;
    std::vector<legend_entry> out;
    for (std::size_t i = 0; i < plot.curves.size(); ++i) out.push_back({mark::dot, curve_colour(i), plot.curves[i].name});
    if (has_mark(plot, point_mark::oversubscribed)) out.push_back({mark::circle, "#3c4149", "more ranks than cores"});
    if (has_mark(plot, point_mark::simulated)) out.push_back({mark::frame, "#3c4149", "simulated"});
    for (std::size_t i = 0; i < plot.models.size(); ++i)
        out.push_back({i == 0 ? mark::dashes : mark::dots, model_colours[std::min<std::size_t>(i, 1)], plot.models[i].name});
    return out;
}

std::string legend_html(std::vector<legend_entry> const& entries) {
    std::string out;
    for (auto const& [shape, colour, name] : entries) {
        using mark = legend_entry::mark;
        bool const line = shape == mark::dashes || shape == mark::dots, filled = shape == mark::dot || shape == mark::square;
        auto const style = line     ? fmt::format("border-top:2px {} {}", shape == mark::dashes ? "dashed" : "dotted", colour)
                           : filled ? fmt::format("background:{0};border-color:{0}", colour)
                                    : fmt::format("border-color:{}", colour);
        auto const* kind = line ? "line" : shape == mark::dot || shape == mark::circle ? "dot" : "square";
        out += fmt::format("<span><i class=\"{}\" style=\"{}\"></i>{}</span>", kind, style, html_text(name));
    }
    return out;
}

std::string standalone_svg(std::string const& svg, std::vector<legend_entry> const& entries) {
    constexpr std::string_view begin = "<svg viewBox=\"0 0 ";
    expect(svg.starts_with(begin), "a plot begins with its size");
    auto const space = svg.find(' ', begin.size());
    double const width = std::stod(svg.substr(begin.size())), height = std::stod(svg.substr(space + 1));
    constexpr double row = 18;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\"{2}",
        width, height + 8 + row * static_cast<double>(entries.size()), svg.substr(svg.find('"', begin.size()) + 1));
    out.resize(out.rfind("</svg>"));
    double y = height + 10;
    for (auto const& [shape, colour, name] : entries) {
        using mark = legend_entry::mark;
        bool const filled = shape == mark::dot || shape == mark::square;
        auto const fill = filled ? colour : "#fff";
        out += shape == mark::dashes || shape == mark::dots
                   ? fmt::format(
                         "<line x1=\"6\" y1=\"{0:.1f}\" x2=\"30\" y2=\"{0:.1f}\" stroke=\"{1}\" stroke-width=\"1.5\" "
                         "stroke-dasharray=\"{2}\"/>\n",
                         y, colour, shape == mark::dashes ? "6 4" : "2 3")
               : shape == mark::dot || shape == mark::circle
                   ? fmt::format("<circle cx=\"18\" cy=\"{:.1f}\" r=\"4.5\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                                 y, fill, colour)
                   : fmt::format("<rect x=\"13\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\" stroke=\"{}\"/>\n", y - 5,
                                 fill, colour);
        out += fmt::format("<text x=\"38\" y=\"{:.1f}\" fill=\"#3c4149\" font-size=\"{}\">{}</text>\n", y + 0.35 * plot_font,
                           plot_font, html_text(name));
        y += row;
    }
    return out + "</svg>\n";
}

}  // namespace muster
