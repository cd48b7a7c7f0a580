#include "bench/report/plots/report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/plots/label_layout.hpp"
#include "bench/report/study_summary.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

constexpr double strip_width = 400, strip_font = 13;

std::string strip_text(double x, double y, char const* anchor, std::string_view colour, std::string const& what) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour, what);
}

std::string whole_svg(double height, std::string_view title, std::string const& inside) {
    return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\" font-size=\"{}\">\n{}</svg>", strip_width,
                       height, html_text(title), strip_font, inside);
}

/// A figure as an SVG text holds it, inside of a segment or cell.
std::string cell_label(report_json const& document, json_place const& at, shown_rounding how, double x, double y,
                       std::string_view colour) {
    return fmt::format(
        "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\" data-value=\"{}\" "
        "data-digits=\"{}\">{}</text>\n",
        x, y, colour, html_text(at.to_string()), how.digits, show_value(document.at(at).get<double>(), how));
}

double part_of(report_json const& row, char const* metric) {
    auto const& metrics = row.at("metrics");
    // Where the two are told apart, their sum is not shown beside them.
    if (std::string_view(metric) == "allreduce_wait_s" && part_of(row, "exposed_s") + part_of(row, "waiting_s") > 0) return 0;
    return metrics.contains(metric) ? std::max(0.0, metrics.at(metric).at("median").get<double>()) : 0;
}

/// The rows that have two parts or more.
std::vector<std::size_t> divided_rows(report_json const& rows) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        auto const told =
            std::ranges::count_if(time_parts(), [&](auto const& part) { return part_of(rows[i], part.metric) > 0; });
        if (told >= 2) out.push_back(i);
    }
    return out;
}

double total_of(report_json const& row) {
    double sum = 0;
    for (auto const& part : time_parts()) sum += part_of(row, part.metric);
    return sum;
}

std::string mix(double part) {
    // White to orange above the median, to blue below it.
    auto const [r, g, b] = part > 0 ? std::tuple{213, 94, 0} : std::tuple{0, 114, 178};
    double const t = std::min(1.0, std::abs(part)) * 0.85;
    auto const blend = [&](int c) { return static_cast<int>(std::lround(255 + t * (c - 255))); };
    return fmt::format("#{:02x}{:02x}{:02x}", blend(r), blend(g), blend(b));
}

std::optional<double> median_of_run(report_json const& run) {
    std::vector<double> told;
    for (auto const& value : run.at("values"))
        if (value.is_number()) told.push_back(value.get<double>());
    if (told.empty()) return {};
    double const middle = median(told);
    if (middle == 0) return {};
    return middle;
}

double deviation(report_json const& value, std::optional<double> middle) {
    return middle && value.is_number() ? value.get<double>() / *middle - 1 : 0;
}

}  // namespace

std::string draw_time_parts(report_json const& document, json_place const& study) {
    auto const& rows = document.at(study).at("rows");
    auto const shown = divided_rows(rows);
    if (shown.empty()) return {};
    constexpr double row_height = 34, bar = 24, left = 74, right = strip_width - 12, top = 6;
    double longest = 0;
    for (auto const i : shown) longest = std::max(longest, total_of(rows[i]));
    std::string out;
    double y = top;
    for (auto const i : shown) {
        auto const ranks = rows[i].at("ranks").get<int>();
        bool const simulated = rows[i].at("simulated").get<bool>();
        out += strip_text(left - 8, y + bar / 2 + 0.35 * strip_font, "end", "#3c4149",
                          simulated ? fmt::format("{} simul.", ranks) : fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"));
        double x = left;
        for (auto const& part : time_parts()) {
            double const value = part_of(rows[i], part.metric), wide = value / longest * (right - left);
            if (!(value > 0)) continue;
            out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", x, y, wide, bar,
                               part.colour);
            auto const how = three_digits(value);
            if (text_width(show_value(value, how), strip_font) + 6 < wide)
                out +=
                    cell_label(document, study / "rows" / i / "metrics" / part.metric / "median", how, x + wide / 2,
                               y + bar / 2 + 0.35 * strip_font, std::string_view(part.colour) == "#0072b2" ? "#fff" : "#14181d");
            x += wide;
        }
        y += row_height;
    }
    out += strip_text((left + right) / 2, y + 12, "middle", "#3c4149", "seconds of a run, medians");
    return whole_svg(y + 20, "Where the time goes", out);
}

std::vector<legend_entry> time_parts_legend(report_json const& document, json_place const& study) {
    auto const& rows = document.at(study).at("rows");
    std::vector<legend_entry> out;
    for (auto const& part : time_parts())
        if (std::ranges::any_of(rows, [&](auto const& row) { return part_of(row, part.metric) > 0; }))
            out.push_back({legend_entry::mark::square, part.colour, part.name});
    return out;
}

double full_colour_of(report_json const& by_rank) {
    double most = 0.05;
    for (auto const& run : by_rank.at("runs")) {
        auto const middle = median_of_run(run);
        for (auto const& value : run.at("values")) most = std::max(most, std::abs(deviation(value, middle)));
    }
    return most;
}

std::string draw_by_rank(report_json const& document, json_place const& study) {
    auto const& strip = document.at(study).at("by_rank");
    if (strip.is_null() || strip.at("runs").empty()) return {};
    auto const ranks = strip.at("ranks").get<std::size_t>(), runs = strip.at("runs").size();
    constexpr double left = 74, right = strip_width - 12, top = 24;
    double const tall = std::clamp(360.0 / static_cast<double>(ranks), 0.35, 24.0),
                 wide = std::min(80.0, (right - left) / static_cast<double>(runs)), full = full_colour_of(strip);
    std::string out;
    double next_label = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        double const middle = top + (static_cast<double>(rank) + 0.5) * tall;
        if (middle < next_label) continue;
        out += strip_text(left - 8, middle + 0.35 * strip_font, "end", "#3c4149", fmt::format("rank {}", rank));
        next_label = middle + 1.3 * strip_font;
    }
    double free = 0;
    for (std::size_t run = 0; run < runs; ++run) {
        auto const& one = strip.at("runs")[run];
        auto const middle = median_of_run(one);
        double const x = left + static_cast<double>(run) * wide;
        auto const head = fmt::format("run {}", one.at("repetition").get<int>());
        double const half = text_width(head, strip_font) / 2;
        if (x + wide / 2 - half >= free && x + wide / 2 + half <= strip_width) {
            out += strip_text(x + wide / 2, top - 8, "middle", "#3c4149", head);
            free = x + wide / 2 + half + 4;
        }
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            auto const& value = one.at("values")[rank];
            double const y = top + static_cast<double>(rank) * tall;
            out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" fill=\"{}\"{}/>\n", x, y, wide,
                               tall, value.is_number() ? mix(deviation(value, middle) / full) : "#eef0f3",
                               tall > 8 ? " stroke=\"#fff\"" : "");
            if (!value.is_number() || tall < 16) continue;
            auto const how = three_digits(value.get<double>());
            if (text_width(show_value(value.get<double>(), how), strip_font) + 4 < wide)
                out += cell_label(document, study / "by_rank" / "runs" / run / "values" / rank, how, x + wide / 2,
                                  y + tall / 2 + 0.35 * strip_font, "#14181d");
        }
    }
    return whole_svg(top + static_cast<double>(ranks) * tall + 6, "Each rank in each run", out);
}

}  // namespace muster
