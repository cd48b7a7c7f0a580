#include "bench/report/study_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/report/study_context.hpp"
#include "bench/study/failed_runs.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

constexpr int most_ranks_shown = 4096;  // a strip of more cannot be drawn

bool is_share(cause why) {
    return why != cause::oversubscribed && why != cause::shared_core;
}

/// Lists the faults, the worst first.
std::vector<bad_news> bad_news_of(study const& s, std::vector<scaling_row> const& rows,
                                  std::vector<scaling_finding> const& causes, std::vector<judgement> const& judged) {
    std::vector<bad_news> out;
    std::int64_t failed = 0, made = 0;
    bool busy = s.load.crowded_before(), simulated = false;
    for (auto const& row : rows) {
        failed += std::int64_t(row.failed - row.lost);
        made += std::int64_t(row.failed - row.lost + row.runs);
        busy |= row.crowded;
        simulated |= row.simulated;
    }
    auto const progress = progress_of(s);
    if (!progress.missing.empty()) out.push_back({bad_news_kind::unfinished, progress.made, progress.planned});
    if (failed > 0) out.push_back({bad_news_kind::failed, failed, made});
    auto const broken = std::ranges::count(judged, expectation_outcome::broken, &judgement::came);
    if (broken > 0) out.push_back({bad_news_kind::broken, broken, std::ssize(judged)});
    if (busy) out.push_back({bad_news_kind::busy});
    if (simulated) out.push_back({bad_news_kind::simulated});
    auto const worst = std::ranges::find_if(causes, [](auto const& each) { return each.why != cause::oversubscribed; });
    if (worst == causes.end()) return out;
    bad_news news{bad_news_kind::cause, 0, 0, worst->why, worst->ranks, {}, {}};
    // A part that does not shrink is not a share of the time if more ranks are slower.
    bool const has_figure = worst->why != cause::serial_part || worst->figure < 1;
    if (has_figure) (is_share(worst->why) ? news.share : news.ranks_of_core) = worst->figure;
    out.push_back(news);
    return out;
}

/// The fastest beyond the spreads, else the base: no more ranks than help.
scaling_row const* row_of_tile(std::vector<scaling_row> const& rows, study_plan const& plan) {
    auto const *best = best_row(rows, plan), *base = base_row(rows, plan);
    if (best == nullptr || best == base || !best->speedup) return best;
    return best->speedup->within_spread || best->speedup->value <= 1 ? base : best;
}

std::optional<best_point> best_of(study const& s, std::vector<scaling_row> const& rows) {
    auto const* best = row_of_tile(rows, s.plan);
    if (best == nullptr) return std::nullopt;
    auto const others = std::ranges::count_if(rows, [&](auto const& row) { return &row != best && row.speedup; });
    return best_point{best->ranks,   best->nodes,     *best->find(s.plan.judged.name), best == base_row(rows, s.plan), others,
                      best->speedup, best->efficiency};
}

/// The last value of each rank, or as the plan says.
double told_by(metric_series const& series, study_plan const& plan) {
    return chosen_value({&series}, choice_of(series.name, plan));
}

/// The metric that most ranks tell at the largest number of ranks that has enough cores; compute_s before all others.
std::optional<rank_strip> strip_of(study const& s) {
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
    if (ranks == 0) return std::nullopt;
    std::string metric;
    std::size_t most = 1;
    for (auto const& [name, by] : told[ranks])
        if (by.size() > most || (by.size() == most && most > 1 && name == "compute_s")) metric = name, most = by.size();
    rank_strip out{metric, "", ranks, {}};
    for (auto const& run : s.runs) {
        if (!run.counts() || run.ranks != ranks) continue;
        std::vector<std::optional<double>> values(static_cast<std::size_t>(ranks));
        for (auto const& series : run.metrics)
            if (series.name == metric && series.rank >= 0 && series.rank < ranks) {
                values[static_cast<std::size_t>(series.rank)] = told_by(series, s.plan);
                out.unit = series.unit;
            }
        out.runs.push_back({run.repetition + 1, std::move(values)});
    }
    return out;
}

std::vector<shown_run> shown_runs(study const& s, std::vector<std::string> const& metrics) {
    std::vector<shown_run> out;
    for (auto const& run : s.runs) {
        if (!run.was_made()) continue;  // its number of ranks says which job ended without it
        shown_run one{run.order + 1,
                      run.ranks,
                      run.repetition + 1,
                      run.warmup,
                      run.status,
                      run.started,
                      run.reason,
                      outcome_of(run),
                      run.output,
                      {},
                      std::max(run.load.before, run.load.during.value_or(0)),
                      {}};
        if (run.load.average >= 0) one.load_average = run.load.average;
        for (auto const& name : metrics)
            if (auto const value = value_of(run, name, s.plan); value && (run.status == run_status::ok || name == "wall_s"))
                one.metrics.emplace_back(name, *value);
        out.push_back(std::move(one));
    }
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

std::string_view to_string(bad_news_kind kind) noexcept {
    constexpr std::string_view names[]{"unfinished", "failed", "broken", "busy", "simulated", "cause"};
    return names[static_cast<std::size_t>(kind)];
}

std::optional<double> shown_run::find(std::string_view metric) const noexcept {
    for (auto const& [name, value] : metrics)
        if (name == metric) return value;
    return std::nullopt;
}

study_summary summarise_study(study const& s, std::string const& label, std::string const& file,
                              std::vector<judgement> const& judged) {
    study_summary out;
    out.label = label;
    out.name = s.name;
    out.file = file;
    out.created = s.created;
    out.host = s.machine.host;
    out.cores = s.machine.cores;
    out.subtitle = study_subtitle(s);
    out.rows = scaling_rows(s);
    out.judged = s.plan.judged.name;
    out.judged_unit = unit_of(out.rows, out.judged);
    out.judged_rate = s.plan.judged.rate;
    out.series = s.plan.series;
    if (auto const* base = base_row(out.rows, s.plan)) out.base_ranks = base->ranks;
    out.busy = s.load.crowded_before() || std::ranges::any_of(out.rows, &scaling_row::crowded);
    out.busy_text = s.load.crowded_before() ? "Before the runs " + crowd_text(s.load)
                    : out.busy              ? "Other programs worked during the runs that the table notes"
                                            : "";
    out.notes = s.plan.notes;
    out.published_settings = has_published_settings(s);
    out.metrics = metric_names(out.rows, out.judged);
    out.headline = headline_of(s);
    out.unfinished = unfinished_text(progress_of(s));
    out.best = best_of(s, out.rows);
    out.findings = find_causes(s);
    out.bad = bad_news_of(s, out.rows, out.findings, judged);
    out.judgements = judged;
    out.by_rank = strip_of(s);
    out.runs = shown_runs(s, out.metrics);
    out.context = study_context(s);
    out.definitions = study_definitions(s);
    out.checklist = check_rules(s);
    return out;
}

}  // namespace muster
