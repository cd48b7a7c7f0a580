#include "bench/report/plots/curve_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "bench/report/plots/label_layout.hpp"

namespace muster {

namespace {

constexpr double plot_width = 400, plot_height = 280, plot_font = 13;
// Okabe and Ito.
constexpr char const* colours[]{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6470", "#8c6d31"};
constexpr char const* model_styles[]{"stroke=\"#8a929c\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"",
                                     "stroke=\"#a04a00\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\""};

/// Maps values to units of the drawing.
struct scale {
    bool logarithmic = false;
    double low = 0, high = 1, from = 0, to = 1;
    double operator()(double value) const {
        double const part = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
        return from + part * (to - from);
    }
};

std::pair<double, double> range_of(curve_plot const& plot, bool of_x) {
    double low = INFINITY, high = -INFINITY;
    auto const take = [&](plot_curve const& curve) {
        for (auto const& p : curve.points) {
            low = std::min(low, of_x ? p.x : p.low);
            high = std::max(high, of_x ? p.x : p.high);
        }
    };
    for (auto const& each : plot.curves) take(each);
    for (auto const& each : plot.models) take(each);
    return {low, high};
}

scale scale_of(plot_axis const& axis, std::pair<double, double> range, double from, double to) {
    auto [low, high] = range;
    if (axis.logarithmic) {
        double const room = std::pow(std::max(high / low, 1.5), 0.1);
        return {true, low / room, high * room, from, to};
    }
    if (axis.from_zero) low = std::min(low, 0.0);
    double const room = 0.12 * std::max(high - low, 1e-9 + std::abs(high) * 0.1);
    return {false, axis.from_zero && low == 0 ? 0 : low - room, high + room, from, to};
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
          x_(scale_of(plot.x, range_of(plot, true), 0, 1)),
          y_(scale_of(plot.y, range_of(plot, false), 0, 1)),
          layout_({}) {
        y_ticks_ = plot.y.ticks;
        if (y_ticks_.empty()) y_ticks_ = y_.logarithmic ? log_ticks(y_, plot.y.binary) : linear_ticks(y_);
        double widest = 0;
        for (double const tick : y_ticks_) widest = std::max(widest, text_width(tick_text(plot.y, tick), plot_font));
        frame_ = {widest + 12, 30, plot_width - 12, plot_height - 46};
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
        double free = 0;
        for (double const tick : ticks) {
            double const x = x_(tick), half = text_width(tick_text(plot_.x, tick), plot_font) / 2;
            line(x, frame_.bottom, x, frame_.bottom + 4, "stroke=\"#8a8f98\"");
            if (x - half < free || x + half > plot_width) continue;
            text(x, frame_.bottom + 18, "middle", tick_text(plot_.x, tick), "#3c4149");
            free = x + half + 4;
        }
        text(4, 16, "start", html_text(axis_title(plot_.y)), "#3c4149");
        text((frame_.left + frame_.right) / 2, plot_height - 8, "middle", html_text(axis_title(plot_.x)), "#3c4149");
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
                line(x, low, x, high, stroke);
                for (double const end : {low, high}) line(x - 4, end, x + 4, end, stroke);
                layout_.take({x - 4, high - 1, x + 4, low + 1});
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

std::string legend(curve_plot const& plot) {
    std::string out;
    auto const add = [&](std::string_view mark, std::string_view style, std::string const& name) {
        out += fmt::format("<span><i class=\"{}\" style=\"{}\"></i>{}</span>", mark, style, html_text(name));
    };
    for (std::size_t i = 0; i < plot.curves.size(); ++i)
        add("dot", fmt::format("background:{0};border-color:{0}", curve_colour(i)), plot.curves[i].name);
    if (has_mark(plot, point_mark::oversubscribed)) add("dot", "border-color:#3c4149", "more ranks than cores");
    if (has_mark(plot, point_mark::simulated)) add("square", "border-color:#3c4149", "simulated");
    for (std::size_t i = 0; i < plot.models.size(); ++i)
        add("line", i == 0 ? "border-top:2px dashed #8a929c" : "border-top:2px dotted #a04a00", plot.models[i].name);
    return out;
}

}  // namespace muster
