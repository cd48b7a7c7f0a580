#include "bench/report/plots/report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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

/// One number of ranks in a plot.
struct plotted_row {
    double x, ranks, nodes, cores;
};

/// The rows of these studies, by x and without repeats; nodes and cores are 0 where studies differ.
std::vector<plotted_row> rows_of(report_json const& document, std::vector<std::size_t> const& studies) {
    std::map<double, plotted_row> by_ranks;
    for (auto const i : studies)
        for (auto const& row : document.at("studies")[i].at("rows")) {
            double const ranks = row.at("ranks").get<double>(), nodes = row.at("nodes").get<double>(),
                         cores = row.at("values").at("cores").get<double>();
            auto& one = by_ranks.try_emplace(ranks, plotted_row{ranks, ranks, nodes, cores}).first->second;
            if (one.nodes != nodes) one.nodes = 0;
            if (one.cores != cores) one.cores = 0;
        }
    std::vector<plotted_row> out;
    for (auto const& [ranks, row] : by_ranks) out.push_back(row);
    return out;
}

/// Several nodes, and each row has a number of its own.
bool has_node_axis(std::vector<plotted_row> const& rows) {
    bool several = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].nodes <= 0 || (i > 0 && rows[i].nodes <= rows[i - 1].nodes)) return false;
        several |= rows[i].nodes > 1;
    }
    return several && rows.size() > 1;
}

std::string counted(double n, std::string_view one) {
    return fmt::format("{:.0f} {}{}", n, one, n == 1 ? "" : "s");
}

/// Sets the axis of ranks, or of nodes, and the rows' places on it.
void set_x(plot_axis& axis, std::vector<plotted_row>& rows) {
    bool const by_nodes = has_node_axis(rows), several = std::ranges::any_of(rows, [](auto const&r) { return r.nodes > 1; });
    double const each = rows.empty() ? 0 : rows.front().ranks / std::max(rows.front().nodes, 1.0);
    bool const alike = std::ranges::all_of(rows, [&](auto const& r) { return r.ranks == each * r.nodes; });
    axis = {by_nodes && alike ? "nodes of " + counted(each, "rank") : by_nodes ? "nodes" : "ranks", rows.size() > 1, true};
    for (auto& row : rows) {
        row.x = by_nodes ? row.nodes : row.ranks;
        axis.ticks.push_back(row.x);
        if (by_nodes && !alike) axis.below.push_back(counted(row.ranks, "rank"));
        if (!by_nodes && several) axis.below.push_back(row.nodes > 0 ? counted(row.nodes, "node") : "");
    }
}

/// What is drawn of a model: a speed-up, an efficiency, or the judged value of the base times a power of the speed-up.
struct model_shape {
    bool efficiency = false;
    double base = 1, power = 1;
    double operator()(double speedup, double ranks) const {
        return efficiency ? speedup / ranks : base * std::pow(speedup, power);
    }
};

curve_point model_point(double x, double y) {
    return bare_point(x, y, y, y);
}

/// No more than the cores of the nodes allow: as the rows have it, and between rows where all have the same cores.
std::vector<plotted_row> bounded_rows(std::vector<plotted_row> const& rows) {
    double const cores = rows.front().cores;
    bool const same = rows.front().x == rows.front().ranks &&
                      std::ranges::all_of(rows, [&](auto const& r) { return r.cores == cores && r.x == r.ranks; });
    if (!same) return rows;
    std::vector<plotted_row> out{rows.front()};
    double const last = rows.back().ranks;
    for (int i = 0; i <= 16; ++i)
        if (double const x = cores * std::pow(last / cores, i / 16.0); x > rows.front().ranks) out.push_back({x, x, 1, cores});
    return out;
}

/// Lines from the base: ideal, and the bound by cores.
void add_models(curve_plot& plot, std::size_t studies, std::vector<plotted_row> const& rows, model_shape const& shape) {
    if (rows.size() < 2) return;
    double const first = rows.front().ranks;
    plot_curve ideal{"ideal", {}};
    for (auto const& row : rows) ideal.points.push_back(model_point(row.x, shape(row.ranks / first, row.ranks / first)));
    plot.models.push_back(ideal);
    auto const& last = rows.back();
    bool const bounded =
        studies == 1 && std::ranges::any_of(rows, [](auto const& r) { return r.cores > 0 && r.ranks > r.cores; });
    if (!bounded || std::ranges::any_of(rows, [](auto const& r) { return r.cores <= 0; })) return;
    double const base = std::min(first, rows.front().cores);
    plot_curve bound{fmt::format("bound by {}{}", counted(last.cores, "core"),
                                 last.nodes > 1 ? " of " + counted(last.nodes, "node") : std::string()),
                     {}};
    for (auto const& row : bounded_rows(rows))
        bound.points.push_back(model_point(row.x, shape(std::min(row.ranks, row.cores) / base, row.ranks / first)));
    plot.models.push_back(bound);
}

/// `ends`: where the reader finds the spreads that leave the plot.
void add_chart(std::vector<report_chart>& charts, curve_plot const& plot, report_json const& document, std::string caption,
               std::string_view ends = "--format json has its ends (low, high)") {
    auto svg = draw(plot, document);
    if (svg.empty()) return;
    if (leaves_plot(plot)) caption += fmt::format(" An arrow: the spread reaches beyond the plot; {}.", ends);
    charts.push_back({plot.title, std::move(svg), legend(plot), std::move(caption)});
}

/// Whether a point has a spread.
bool has_whiskers(curve_plot const& plot) {
    return std::ranges::any_of(plot.curves, [](auto const& curve) {
        return std::ranges::any_of(curve.points, [](auto const& point) { return point.low < point.high; });
    });
}

/// The charts of one group; `of` follows their titles.
std::vector<report_chart> charts_of_group(report_json const& document, std::vector<std::size_t> const& studies,
                                          std::string const& of) {
    std::vector<report_chart> charts;
    auto const& first = document.at("studies")[studies.front()];
    auto const metric = first.at("judged").get<std::string>(), unit = first.at("judged_unit").get<std::string>();
    auto rows = rows_of(document, studies);
    auto const plot_of = [&](shown what, std::string title, std::string y) {
        curve_plot plot;
        plot.title = std::move(title) + of;
        for (auto const i : studies) plot.curves.push_back(curve_of(document, i, what));
        std::erase_if(plot.curves, [](auto const& each) { return each.points.empty(); });
        std::erase_if(rows, [&](auto const& row) {
            return std::ranges::none_of(plot.curves, [&](auto const& curve) {
                return std::ranges::find(curve.points, row.ranks, &curve_point::x) != curve.points.end();
            });
        });
        set_x(plot.x, rows);
        for (auto& curve : plot.curves)
            for (auto& point : curve.points) point.x = std::ranges::find(rows, point.x, &plotted_row::ranks)->x;
        plot.y = {std::move(y)};
        return plot;
    };
    auto time = plot_of(shown::time, metric, unit.empty() ? metric : unit);
    time.y.logarithmic = rows.size() > 1;
    time.y.from_zero = true;
    bool const rate = first.at("judged_rate").get<bool>(), weak = first.at("series") == "weak";
    if (studies.size() == 1 && !time.curves.empty())
        add_models(time, 1, rows, {false, time.curves.front().points.front().y, rate ? 1.0 : weak ? 0.0 : -1.0});
    add_chart(charts, time, document,
              has_whiskers(time) ? "Medians of each number of ranks; whiskers are the spreads."
                                 : "One run of each number of ranks: there is no spread.",
              "the table has its ends");

    auto speedup = plot_of(shown::speedup, "Speed-up", "times the base");
    if (rows.size() < 2) return charts;
    speedup.y.logarithmic = speedup.y.binary = true;
    add_models(speedup, studies.size(), rows, {});
    add_chart(charts, speedup, document,
              fmt::format("{}Points are not joined: nothing was measured between them.{}",
                          has_whiskers(time) ? "Whiskers span the quotients of the ends of both spreads. " : "",
                          has_whiskers(time) ? " A ratio that the spread swallows has no figure." : ""));

    auto efficiency = plot_of(shown::efficiency, "Efficiency", "part of the ideal");
    efficiency.y.from_zero = true;
    add_models(efficiency, studies.size(), rows, {true});
    add_chart(charts, efficiency, document, "Speed-up x base ranks / ranks.",
              "its ends are those of the speed-up x base ranks / ranks");
    return charts;
}

}  // namespace

std::vector<std::vector<std::size_t>> groups_of(report_json const& document) {
    std::vector<std::pair<report_json, std::vector<std::size_t>>> groups;
    auto const& studies = document.at("studies");
    for (std::size_t i = 0; i < studies.size(); ++i) {
        auto const key = report_json::array({studies[i].at("judged"), studies[i].at("judged_rate"), studies[i].at("series")});
        auto const found = std::ranges::find(groups, key, [](auto const& each) { return each.first; });
        if (found == groups.end())
            groups.push_back({key, {i}});
        else
            found->second.push_back(i);
    }
    std::vector<std::vector<std::size_t>> out;
    for (auto& [key, members] : groups) out.push_back(std::move(members));
    return out;
}

std::vector<report_chart> scaling_charts(report_json const& document) {
    std::vector<std::vector<report_chart>> all;
    auto const groups = groups_of(document);
    for (auto const& members : groups) {
        auto const& first = document.at("studies")[members.front()];
        auto const series = first.at("series").get<std::string>();
        auto const of = groups.size() < 2      ? std::string()
                        : series != "as-given" ? fmt::format(": {} scaling", series)
                                               : ": work as the program divides it";
        all.push_back(charts_of_group(document, members, of));
    }
    std::vector<report_chart> out;
    for (std::size_t kind = 0; kind < 3; ++kind)
        for (auto& charts : all)
            if (kind < charts.size()) out.push_back(std::move(charts[kind]));
    return out;
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
        charts.push_back({fmt::format("{} of each rank in each run", strip.at("metric").get<std::string>()),
                          std::move(svg),
                          {{legend_entry::mark::square, "#d55e00", "above the run's median"},
                           {legend_entry::mark::square, "#0072b2", "below"}},
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

std::vector<report_chart> all_charts(report_json const& document) {
    auto out = scaling_charts(document);
    bool published = false;
    for (std::size_t i = 0; i < document.at("studies").size(); ++i) {
        for (auto& chart : study_charts(document, json_place("/studies") / i)) {
            if (document.at("studies").size() > 1) chart.title += ": " + document.at("studies")[i].at("label").get<std::string>();
            out.push_back(std::move(chart));
        }
        published |= document.at("studies")[i].at("published_settings").get<bool>();
    }
    for (auto& chart : busbw_charts(document)) out.push_back(std::move(chart));
    if (published) out.push_back(published_chart());
    return out;
}

}  // namespace muster
