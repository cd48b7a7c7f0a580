#include "bench/report/plots/report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/report/plots/curve_plot.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

// What lies beyond is no time, rate or ratio that anyone measured.
constexpr double smallest_drawn = 1e-15, largest_drawn = 1e15;

enum class shown { time, speedup, efficiency };

point_mark mark_of(report_json const& row) {
    if (row.at("simulated").get<bool>()) return point_mark::simulated;
    return row.at("oversubscribed").get<bool>() ? point_mark::oversubscribed : point_mark::plain;
}

curve_point point_of(report_json const& value, json_place const& at, std::string const& middle, double scale,
                     shown_rounding how) {
    return {1,
            scale * value.at(middle).get<double>(),
            scale * value.at("low").get<double>(),
            scale * value.at("high").get<double>(),
            point_mark::plain,
            at,
            how};
}

/// A point without a label.
curve_point bare_point(double x, double y, double low, double high, point_mark mark = point_mark::plain) {
    return {x, y, low, high, mark, json_place(), std::nullopt};
}

/// The curve of one study; without points where it has nothing to show.
plot_curve curve_of(report_json const& document, std::size_t study, shown what) {
    json_place const at = json_place("/studies") / study;
    auto const& s = document.at(at);
    plot_curve out{s.at("label").get<std::string>(), {}};
    auto const metric = s.at("judged").get<std::string>();
    for (std::size_t i = 0; i < s.at("rows").size(); ++i) {
        auto const& row = s.at("rows")[i];
        curve_point point;
        auto const row_at = at / "rows" / i;
        if (what == shown::time) {
            if (!row.at("metrics").contains(metric)) continue;
            auto const& value = row.at("metrics").at(metric);
            point = point_of(value, row_at / "metrics" / metric / "median", "median", 1,
                             three_digits(value.at("median").get<double>()));
        } else {
            if (row.at("speedup").is_null()) continue;
            auto const& value = row.at("speedup");
            bool const parts = what == shown::efficiency;
            double const scale = parts ? value.at("efficiency").get<double>() / value.at("value").get<double>() : 1;
            point = point_of(value, row_at / "speedup" / (parts ? "efficiency" : "value"), "value", scale,
                             parts ? shown_rounding{0, 100} : shown_rounding{2, 1});
            if (value.at("within_spread").get<bool>() && row.at("ranks") != s.at("base_ranks")) point.rounding.reset();
        }
        if (!(point.low > smallest_drawn && point.high < largest_drawn)) continue;
        point.x = row.at("ranks").get<double>();
        point.mark = mark_of(row);
        out.points.push_back(point);
    }
    return out;
}

std::vector<double> ranks_of(curve_plot const& plot) {
    std::set<double> all;
    for (auto const& curve : plot.curves)
        for (auto const& point : curve.points) all.insert(point.x);
    return {all.begin(), all.end()};
}

/// How far apart the least and the most are.
double ratio_of(curve_plot const& plot) {
    double low = 1e300, high = 0;
    for (auto const& curve : plot.curves)
        for (auto const& p : curve.points) low = std::min(low, p.low), high = std::max(high, p.high);
    return low > 0 ? high / low : 1;
}

/// Lines from the base: ideal, and no more than the cores allow.
void add_models(curve_plot& plot, report_json const& document, std::vector<std::size_t> const& studies, bool efficiency) {
    auto const ranks = ranks_of(plot);
    if (ranks.size() < 2) return;
    double const first = ranks.front(), last = ranks.back();
    auto const line_point = [](double x, double y) { return bare_point(x, y, y, y); };
    plot.models.push_back({"ideal", {line_point(first, 1), line_point(last, efficiency ? 1 : last / first)}});
    if (studies.size() != 1) return;
    auto const& s = document.at("studies")[studies.front()];
    double const cores = s.at("cores").get<double>();
    bool const bounded =
        std::ranges::any_of(s.at("rows"), [](auto const& row) { return row.at("oversubscribed").template get<bool>(); });
    if (!bounded || cores < first || cores >= last) return;
    plot_curve bound{fmt::format("bound by {:.0f} cores", cores), {line_point(first, 1)}};
    if (efficiency) {
        bound.points.push_back(line_point(cores, 1));
        for (int i = 1; i <= 16; ++i) {
            double const x = cores * std::pow(last / cores, i / 16.0);
            bound.points.push_back(line_point(x, cores / x));
        }
    } else {
        bound.points.push_back(line_point(cores, cores / first));
        bound.points.push_back(line_point(last, cores / first));
    }
    plot.models.push_back(bound);
}

void add_chart(std::vector<report_chart>& charts, curve_plot const& plot, report_json const& document, std::string caption) {
    auto svg = draw(plot, document);
    if (!svg.empty()) charts.push_back({plot.title, std::move(svg), legend(plot), std::move(caption)});
}

curve_plot plot_of(report_json const& document, std::vector<std::size_t> const& studies, shown what, std::string title,
                   std::string y) {
    curve_plot plot;
    plot.title = std::move(title);
    for (auto const i : studies) plot.curves.push_back(curve_of(document, i, what));
    std::erase_if(plot.curves, [](auto const& each) { return each.points.empty(); });
    plot.x = {"ranks", true, true};
    plot.x.ticks = ranks_of(plot);
    plot.x.logarithmic = plot.x.ticks.size() > 1;
    plot.y = {std::move(y)};
    return plot;
}

void add_scaling(std::vector<report_chart>& charts, report_json const& document, std::vector<std::size_t> const& studies) {
    auto const& first = document.at("studies")[studies.front()];
    auto const metric = first.at("judged").get<std::string>(), unit = first.at("judged_unit").get<std::string>();
    auto time = plot_of(document, studies, shown::time, metric, unit.empty() ? metric : fmt::format("{}, {}", metric, unit));
    time.y.logarithmic = ratio_of(time) > 6;
    time.y.from_zero = true;
    add_chart(charts, time, document, "Medians of each number of ranks; whiskers are the spreads.");

    auto speedup = plot_of(document, studies, shown::speedup, "speed-up", "speed-up over the base");
    if (ranks_of(speedup).size() < 2) return;
    speedup.y.logarithmic = speedup.y.binary = true;
    add_models(speedup, document, studies, false);
    add_chart(charts, speedup, document,
              "Whiskers span the quotients of the ends of both spreads. Points are not joined: nothing was measured between "
              "them. A ratio "
              "that the spread swallows has no figure.");

    auto efficiency = plot_of(document, studies, shown::efficiency, "efficiency", "efficiency (1 = ideal)");
    efficiency.y.from_zero = true;
    add_models(efficiency, document, studies, true);
    add_chart(charts, efficiency, document, "Speed-up x base ranks / ranks.");
}

}  // namespace

std::vector<report_chart> scaling_charts(report_json const& document) {
    std::vector<report_chart> charts;
    std::vector<std::pair<report_json, std::vector<std::size_t>>> groups;  // judged by the same
    auto const& studies = document.at("studies");
    for (std::size_t i = 0; i < studies.size(); ++i) {
        auto const key = report_json::array({studies[i].at("judged"), studies[i].at("judged_rate")});
        auto const found = std::ranges::find(groups, key, [](auto const& each) { return each.first; });
        if (found == groups.end())
            groups.push_back({key, {i}});
        else
            found->second.push_back(i);
    }
    for (auto const& [key, members] : groups) add_scaling(charts, document, members);
    return charts;
}

std::vector<report_chart> study_charts(report_json const& document, json_place const& study) {
    std::vector<report_chart> charts;
    auto const label = document.at(study).at("label").get<std::string>();
    if (auto svg = draw_time_parts(document, study); !svg.empty())
        charts.push_back(
            {"Where the time of a run goes", std::move(svg), time_parts_legend(document, study),
             "Medians over the runs, of the metrics that the program tells. Exposed communication is what is not hidden "
             "behind compute."});
    if (auto svg = draw_by_rank(document, study); !svg.empty()) {
        auto const& strip = document.at(study).at("by_rank");
        charts.push_back(
            {fmt::format("{} of each rank in each run", strip.at("metric").get<std::string>()), std::move(svg),
             "<span><i class=\"square\" style=\"background:#d55e00;border-color:#d55e00\"></i>above the run's median</span>"
             "<span><i class=\"square\" style=\"background:#0072b2;border-color:#0072b2\"></i>below</span>",
             fmt::format("{} ranks. A cell's colour is full where it differs by {:.0f}% from the median of its run.",
                         strip.at("ranks").get<int>(), 100 * full_colour_of(strip))});
    }
    return charts;
}

std::vector<report_chart> busbw_charts(report_json const& document) {
    std::vector<report_chart> charts;
    auto const& tables = document.at("busbw");
    for (std::size_t t = 0; t < tables.size(); ++t) {
        auto const& table = tables[t];
        curve_plot plot;
        plot.title = fmt::format("{} {} on {} ranks", table.at("collective").get<std::string>(),
                                 table.at("type").get<std::string>(), table.at("ranks").get<int>());
        for (std::size_t c = 0; c < table.at("curves").size(); ++c) {
            auto const& curve = table.at("curves")[c];
            bool const simulated = curve.at("simulated").get<bool>();
            plot_curve one{curve.at("name").get<std::string>() + (simulated ? ", simulated" : ""), {}, true};
            for (auto const& p : curve.at("points")) {
                auto const value = [&](char const* name) { return p.at(name).get<double>(); };
                if (value("low") > smallest_drawn && value("high") < largest_drawn && value("bytes") < largest_drawn)
                    one.points.push_back(bare_point(value("bytes"), value("busbw_gbs"), value("low"), value("high"),
                                                    simulated ? point_mark::simulated : point_mark::plain));
            }
            plot.curves.push_back(one);
        }
        plot.x = {"bytes", true, true, true};
        plot.y = {"bus bandwidth, GB/s", true};
        add_chart(charts, plot, document,
                  fmt::format("Median of the samples, out of place; whiskers are the spreads. {}, {}, {}.",
                              table.at("host").get<std::string>(), table.at("created").get<std::string>(),
                              table.at("file").get<std::string>()));
    }
    return charts;
}

report_chart published_chart() {
    curve_plot plot;
    plot.title = "published";
    auto const point = [](int gpus, double speedup) { return bare_point(gpus, speedup, speedup, speedup); };
    plot.curves = {{"MNIST, published", {}}, {"CIFAR-10, published", {}}};
    for (auto const& p : published_rows) {
        plot.curves[0].points.push_back(point(p.gpus, p.mnist_speedup));
        plot.curves[1].points.push_back(point(p.gpus, p.cifar_speedup));
        plot.x.ticks.push_back(p.gpus);
    }
    plot.x.title = "A100 GPUs";
    plot.x.logarithmic = plot.x.binary = true;
    plot.y = {"speed-up over 1 GPU", true, true};
    plot.models = {{"ideal", {point(1, 1), point(32, 32)}}};
    return {"Published, 2020, A100s: not like for like", draw(plot, report_json::object()), legend(plot),
            "Other hardware and software; here for the shape only. Its numbers are in the table below."};
}

}  // namespace muster
