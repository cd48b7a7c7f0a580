#include "bench/simulate/published_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

namespace {

using speedups = std::vector<std::pair<int, double>>;  // of ranks

constexpr double width = 640, height = 420, left = 60, right = 20, top = 40, bottom = 110;

class speedup_plot {
  public:
    explicit speedup_plot(int most) : octaves_(std::max(1.0, std::log2(most))) {}

    double x(double ranks) const { return left + std::log2(ranks) / octaves_ * (width - left - right); }
    double y(double speedup) const {
        return height - bottom - std::log2(std::max(speedup, 0.5)) / octaves_ * (height - top - bottom);
    }

    void frame(std::string_view title) {
        text(width / 2, 22, title, "middle", "#111", 15);
        for (int n = 1; std::log2(n) <= octaves_; n *= 2) {
            line(x(n), y(1), x(n), y(std::exp2(octaves_)), "#ddd", "");
            line(x(1), y(n), x(std::exp2(octaves_)), y(n), "#ddd", "");
            text(x(n), height - bottom + 18, std::to_string(n), "middle");
            text(left - 8, y(n) + 4, std::to_string(n), "end");
        }
        text(width / 2, height - bottom + 36, "GPUs (logarithmic)", "middle");
        body_ +=
            fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">speed-up (logarithmic)</text>\n",
                        (height - bottom + top) / 2);
        line(x(1), y(1), x(std::exp2(octaves_)), y(std::exp2(octaves_)), "#999", "2 4");
        text(x(std::exp2(octaves_)) - 8, y(std::exp2(octaves_)) + 14, "ideal", "end", "#777");
    }

    /// Simulated points are hollow and joined by dashes: they are no measurements.
    void curve(speedups const& points, std::string_view name, std::string_view colour, bool simulated) {
        for (std::size_t i = 1; i < points.size(); ++i)
            line(x(points[i - 1].first), y(points[i - 1].second), x(points[i].first), y(points[i].second), colour,
                 simulated ? "6 4" : "");
        for (auto const& [ranks, value] : points) mark(x(ranks), y(value), colour, simulated);
        double const at = height - bottom + 58 + 18 * static_cast<double>(curves_++);
        mark(left + 6, at - 4, colour, simulated);
        text(left + 20, at, name);
    }

    std::string svg() const {
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n<rect width=\"{0}\" height=\"{1}\" "
            "fill=\"#fff\"/>\n{2}</svg>\n",
            width, height, body_);
    }

  private:
    void line(double x1, double y1, double x2, double y2, std::string_view colour, std::string_view dashes) {
        body_ +=
            fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-dasharray=\"{}\"/>\n",
                        x1, y1, x2, y2, colour, dashes.empty() ? "none" : dashes);
    }
    void mark(double at_x, double at_y, std::string_view colour, bool hollow) {
        body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" stroke=\"{}\" stroke-width=\"2\" fill=\"{}\"/>\n", at_x,
                             at_y, colour, hollow ? "#fff" : colour);
    }
    void text(double at_x, double at_y, std::string_view words, std::string_view anchor = "start",
              std::string_view colour = "#333", int size = 12) {
        body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\" font-size=\"{}\">{}</text>\n", at_x,
                             at_y, anchor, colour, size, words);
    }

    double octaves_;
    int curves_ = 0;
    std::string body_;
};

speedups of_study(simulated_study const& study) {
    speedups out;
    for (auto const& each : study.results)
        out.emplace_back(each.ranks, seconds_of_run(study, study.results.front()) / seconds_of_run(study, each));
    return out;
}

}  // namespace

std::string published_plot(simulated_study const& as_published, simulated_study const& ours) {
    auto const points = published_points(as_published.plan.network);
    speedups measured;
    for (auto const& each : points) measured.emplace_back(each.ranks, points.front().seconds / each.seconds);
    int const most = std::max(points.back().ranks, ours.plan.ranks.back());
    speedup_plot plot(most);
    plot.frame(fmt::format("{}: the published table, and SIMULATED on {}", as_published.plan.network,
                           as_published.plan.job.platform.name));
    plot.curve(measured, "published, measured in 2020", "#111", false);
    plot.curve(of_study(as_published), "SIMULATED, published settings (compute, input and constants fitted to the table)",
               "#b3261e", true);
    plot.curve(of_study(ours), "SIMULATED, muster's settings (the faster fitted rate at every N, overlap, no constants)",
               "#0b57d0", true);
    return plot.svg();
}

}  // namespace muster
