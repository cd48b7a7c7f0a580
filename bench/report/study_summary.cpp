#include "bench/report/study_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/study/failed_runs.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

report_json to_json(summary const& s, std::string const& unit) {
    return {{"median", s.median},     {"low", s.spread.low},  {"high", s.spread.high}, {"confidence", s.spread.confidence},
            {"smallest", s.smallest}, {"largest", s.largest}, {"count", s.count},      {"unit", unit}};
}

report_json to_json(speedup_ratio const& ratio, double efficiency) {
    return {{"value", ratio.value},
            {"low", ratio.low},
            {"high", ratio.high},
            {"has_spread", ratio.has_spread},
            {"within_spread", ratio.within_spread},
            {"efficiency", efficiency}};
}

report_json to_json(scaling_row const& r) {
    report_json row{{"ranks", r.ranks},
                    {"nodes", r.nodes},
                    {"runs", r.runs},
                    {"failed", r.failed},
                    {"failure", r.failure},
                    {"metrics", report_json::object()},
                    {"speedup", nullptr},
                    {"crowded", r.crowded},
                    {"oversubscribed", r.oversubscribed},
                    {"simulated", r.simulated},
                    {"note", scaling_note(r)},
                    {"values", {{"made", r.runs + r.failed}, {"cores", r.cores}, {"others", r.others}}},
                    {"names", report_json::array({r.failure, "100%"})}};
    for (auto const& each : r.outliers) {
        auto const repeat = std::to_string(each.repetition + 1);
        row["values"]["outlying_repeat_" + repeat] = each.repetition + 1;
        row["values"]["outlier_" + repeat] = each.value;
        row["values"]["median"] = r.metrics.front().value.median;
    }
    for (auto const& metric : r.metrics) row["metrics"][metric.name] = to_json(metric.value, metric.unit);
    if (r.speedup) row["speedup"] = to_json(*r.speedup, r.efficiency);
    return row;
}

report_json values_json(std::vector<std::pair<std::string, double>> const& values) {
    auto out = report_json::object();
    for (auto const& [name, value] : values) out[name] = value;
    return out;
}

report_json findings_json(std::vector<scaling_finding> const& causes) {
    auto out = report_json::array();
    for (auto const& each : causes)
        out.push_back({{"cause", to_string(each.why)},
                       {"ranks", each.ranks},
                       {"figure", each.figure},
                       {"low", each.low},
                       {"high", each.high},
                       {"text", each.text},
                       {"advice", each.advice},
                       {"values", values_json(each.values)},
                       {"names", each.names}});
    return out;
}

report_json judgements_json(std::vector<judgement> const& judged) {
    constexpr std::string_view names[]{"kept", "broken", "not judged"};
    auto out = report_json::array();
    for (auto const& each : judged)
        out.push_back({{"verdict", names[static_cast<std::size_t>(each.came)]},
                       {"text", each.text},
                       {"values", values_json(each.values)},
                       {"names", each.names}});
    return out;
}

constexpr int most_ranks_shown = 4096;  // a strip of more cannot be drawn

bool is_share(cause why) {
    return why != cause::oversubscribed && why != cause::shared_core;
}

/// What went wrong, the worst first.
void add_bad_news(study const& s, std::vector<scaling_row> const& rows, std::vector<scaling_finding> const& causes,
                  std::vector<judgement> const& judged, report_json& tiles) {
    std::size_t failed = 0, made = 0;
    bool busy = s.load.crowded_before(), simulated = false;
    for (auto const& row : rows) {
        failed += row.failed - row.lost;
        made += row.failed - row.lost + row.runs;
        busy |= row.crowded;
        simulated |= row.simulated;
    }
    auto const progress = progress_of(s);
    if (!progress.missing.empty())
        tiles.push_back({{"kind", "unfinished"}, {"made", progress.made}, {"planned", progress.planned}});
    if (failed > 0) tiles.push_back({{"kind", "failed"}, {"failed", failed}, {"made", made}});
    auto const broken = std::ranges::count(judged, expectation_outcome::broken, &judgement::came);
    if (broken > 0) tiles.push_back({{"kind", "broken"}, {"broken", broken}, {"judged", judged.size()}});
    if (busy) tiles.push_back({{"kind", "busy"}});
    if (simulated) tiles.push_back({{"kind", "simulated"}});
    auto const worst = std::ranges::find_if(causes, [](auto const& each) { return each.why != cause::oversubscribed; });
    if (worst == causes.end()) return;
    report_json tile{{"kind", "cause"}, {"cause", to_string(worst->why)}, {"ranks", worst->ranks}};
    // What does not shrink is no share of the time where more ranks are slower.
    bool const has_figure = worst->why != cause::serial_part || worst->figure < 1;
    if (has_figure) tile[is_share(worst->why) ? "share" : "ranks_of_core"] = worst->figure;
    tiles.push_back(tile);
}

/// The fastest beyond the spreads, else the base: no more ranks than help.
scaling_row const* row_of_tile(std::vector<scaling_row> const& rows, study_plan const& plan) {
    auto const *best = best_row(rows, plan), *base = base_row(rows, plan);
    if (best == nullptr || best == base || !best->speedup) return best;
    return best->speedup->within_spread || best->speedup->value <= 1 ? base : best;
}

/// The best point, then what went wrong, the worst first.
report_json tiles_json(study const& s, std::vector<scaling_row> const& rows, std::vector<scaling_finding> const& causes,
                       std::vector<judgement> const& judged) {
    auto tiles = report_json::array();
    if (auto const* best = row_of_tile(rows, s.plan)) {
        auto const* metric = best->find(s.plan.judged.name);
        tiles.push_back({{"kind", "best"},
                         {"ranks", best->ranks},
                         {"nodes", best->nodes},
                         {"metric", metric->name},
                         {"value", to_json(metric->value, metric->unit)},
                         {"base", best == base_row(rows, s.plan)},
                         {"others", std::ranges::count_if(rows, [&](auto const& row) { return &row != best && row.speedup; })}});
        if (best->speedup) tiles.back()["speedup"] = to_json(*best->speedup, best->efficiency);
    }
    add_bad_news(s, rows, causes, judged, tiles);
    return tiles;
}

/// A text with its figures.
report_json sentence_json(std::string const& text, std::vector<std::pair<std::string, double>> const& values,
                          std::vector<std::string> const& names = {}) {
    return {{"text", text}, {"values", values_json(values)}, {"names", names}};
}

/// What is missing; a text of nothing if all runs were made.
report_json unfinished_json(study const& s) {
    auto const progress = progress_of(s);
    std::vector<std::pair<std::string, double>> values{{"made", static_cast<double>(progress.made)},
                                                       {"planned", static_cast<double>(progress.planned)},
                                                       {"repeats", progress.repeats}};
    for (auto const& [ranks, made] : progress.missing) {
        values.emplace_back(fmt::format("ranks_{}", ranks), ranks);
        values.emplace_back(fmt::format("made_{}", ranks), made);
    }
    return sentence_json(unfinished_text(progress), values);
}

/// The last value of each rank, or as the plan says.
double told_by(metric_series const& series, study_plan const& plan) {
    metric_choice choice{series.name};
    for (auto const& each : plan.choices)
        if (each.name == series.name) choice = each;
    return chosen_value({&series}, choice);
}

/// The metric that most ranks tell at the largest number of ranks that has enough cores; compute_s before all others.
report_json by_rank_json(study const& s) {
    std::map<int, std::map<std::string, std::set<int>>> told;  // ranks, metric: by which ranks
    std::set<int> crowded;
    for (auto const& run : s.runs) {
        if (!run.counts()) continue;
        if (run.oversubscribed) crowded.insert(run.ranks);
        for (auto const& series : run.metrics)
            if (series.rank >= 0) told[run.ranks][series.name].insert(series.rank);
    }
    int ranks = 0;
    for (bool const enough : {true, false})
        for (auto const& [n, by_metric] : told)
            if (n <= most_ranks_shown && (!enough || !crowded.contains(n)) && (ranks == 0 || enough) &&
                std::ranges::any_of(by_metric, [](auto const& one) { return one.second.size() > 1; }))
                ranks = n;
    if (ranks == 0) return nullptr;
    std::string metric;
    std::size_t most = 1;
    for (auto const& [name, by] : told[ranks])
        if (by.size() > most || (by.size() == most && most > 1 && name == "compute_s")) metric = name, most = by.size();
    report_json out{{"metric", metric}, {"unit", ""}, {"ranks", ranks}, {"runs", report_json::array()}};
    for (auto const& run : s.runs) {
        if (!run.counts() || run.ranks != ranks) continue;
        std::vector<double> values(static_cast<std::size_t>(ranks), NAN);
        for (auto const& series : run.metrics)
            if (series.name == metric && series.rank >= 0 && series.rank < ranks) {
                values[static_cast<std::size_t>(series.rank)] = told_by(series, s.plan);
                out["unit"] = series.unit;
            }
        auto cells = report_json::array();
        for (double const value : values) cells.push_back(std::isnan(value) ? report_json() : report_json(value));
        out["runs"].push_back({{"repetition", run.repetition + 1}, {"values", cells}});
    }
    return out;
}

report_json runs_json(study const& s, std::vector<std::string> const& metrics) {
    auto out = report_json::array();
    for (auto const& run : s.runs) {
        if (!run.was_made()) continue;  // its number of ranks says which job ended without it
        report_json one{{"order", run.order + 1},
                        {"ranks", run.ranks},
                        {"repetition", run.repetition + 1},
                        {"warmup", run.warmup},
                        {"started", run.started},
                        {"status", to_string(run.status)},
                        {"reason", run.reason},
                        {"failure", outcome_of(run)},
                        {"output", run.output},
                        {"load_average", run.load.average < 0 ? report_json() : report_json(run.load.average)},
                        {"others", std::max(run.load.before, run.load.during.value_or(0))},
                        {"metrics", report_json::object()}};
        for (auto const& name : metrics)
            if (auto const value = value_of(run, name, s.plan); value && (run.status == run_status::ok || name == "wall_s"))
                one["metrics"][name] = *value;
        out.push_back(one);
    }
    return out;
}

/// The metrics of all rows, the judged one first, wall_s last.
std::vector<std::string> metric_names(std::vector<scaling_row> const& rows, std::string const& judged) {
    std::vector<std::string> out{judged};
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (metric.name != "wall_s" && std::ranges::find(out, metric.name) == out.end()) out.push_back(metric.name);
    if (judged != "wall_s") out.emplace_back("wall_s");
    return out;
}

/// What a reader must know of every figure, where the plan holds it.
report_json notes_json(study const& s) {
    auto const document = muster::to_json(s);
    auto const& plan = document.at("plan");
    return plan.contains("notes") ? report_json(plan.at("notes")) : report_json::array();
}

report_json checklist_json(study const& s) {
    auto out = report_json::array();
    for (auto const& each : check_rules(s))
        out.push_back(
            {{"number", each.number}, {"rule", each.rule}, {"answer", to_string(each.answer)}, {"reason", each.reason}});
    return out;
}

std::string unit_of(std::vector<scaling_row> const& rows, std::string const& metric) {
    for (auto const& row : rows)
        if (auto const* found = row.find(metric)) return found->unit;
    return {};
}

}  // namespace

bool has_published_settings(study const& results) {
    auto const& plan = results.plan;
    auto const given = [&](std::string_view option) { return std::ranges::find(plan.program, option) != plan.program.end(); };
    return (plan.net == "mnist" || plan.net == "cifar10") && plan.protocol == "published" && !given("--batch") &&
           !given("--lr") && !given("--momentum");
}

report_json study_summary(study const& s, std::string const& file, std::vector<judgement> const& judged) {
    auto const rows = scaling_rows(s);
    auto const causes = find_causes(s);
    auto const* base = base_row(rows, s.plan);
    auto const headline = headline_of(s);
    auto const metrics = metric_names(rows, s.plan.judged.name);
    bool const busy = s.load.crowded_before() || std::ranges::any_of(rows, &scaling_row::crowded);
    report_json out{{"schema", "muster.scaling-summary/3"},
                    {"name", s.name},
                    {"file", file},
                    {"created", s.created},
                    {"host", s.machine.host},
                    {"cores", s.machine.cores},
                    {"subtitle", study_subtitle(s)},
                    {"judged", s.plan.judged.name},
                    {"judged_unit", unit_of(rows, s.plan.judged.name)},
                    {"judged_rate", s.plan.judged.rate},
                    {"series", to_string(s.plan.series)},
                    {"base_ranks", base == nullptr ? report_json() : report_json(base->ranks)},
                    {"busy", busy},
                    {"busy_text", s.load.crowded_before() ? "Before the runs " + crowd_text(s.load)
                                  : busy                  ? "Other programs worked during the runs that the table notes"
                                                          : ""},
                    {"notes", notes_json(s)},
                    {"published_settings", has_published_settings(s)},
                    {"metrics", metrics},
                    {"headline", sentence_json(headline.text, headline.values, headline.names)},
                    {"unfinished", unfinished_json(s)},
                    {"tiles", tiles_json(s, rows, causes, judged)},
                    {"rows", report_json::array()},
                    {"findings", findings_json(causes)},
                    {"judgements", judgements_json(judged)},
                    {"by_rank", by_rank_json(s)},
                    {"runs", runs_json(s, metrics)},
                    {"context", study_context(s)},
                    {"definitions", study_definitions(s)},
                    {"checklist", checklist_json(s)}};
    for (auto const& r : rows) out["rows"].push_back(to_json(r));
    return out;
}

}  // namespace muster
