#include "bench/study/scaling_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "bench/study/failed_runs.hpp"

namespace muster {

namespace {

constexpr std::string_view wall = "wall_s";

using runs = std::vector<study_run const*>;

std::vector<metric_series const*> told_in(study_run const& run, std::string const& name) {
    std::vector<metric_series const*> out;
    for (auto const& series : run.metrics)
        if (series.name == name) out.push_back(&series);
    return out;
}

row_metric measure(runs const& of, std::string const& name, study_plan const& plan) {
    row_metric out{name, {}, {}};
    std::vector<double> values;
    for (auto const* run : of) {
        auto const told = told_in(*run, name);
        if (told.empty()) continue;
        out.unit = told.front()->unit;
        values.push_back(chosen_value(told, choice_of(name, plan)));
    }
    out.value = summarise(values);
    return out;
}

std::vector<row_metric> measure_all(runs const& of, study_plan const& plan) {
    std::vector<row_metric> out;
    std::vector<std::string> names;
    for (auto const* run : of)
        for (auto const& series : run->metrics)
            if (series.name != wall && std::find(names.begin(), names.end(), series.name) == names.end())
                names.push_back(series.name);
    for (auto const& name : names) out.push_back(measure(of, name, plan));
    std::vector<double> seconds;
    for (auto const* run : of) seconds.push_back(run->wall_s);
    out.push_back({std::string(wall), "s", summarise(seconds)});
    auto const judged = std::ranges::find(out, plan.judged.name, &row_metric::name);
    if (judged != out.end()) std::rotate(out.begin(), judged, judged + 1);
    return out;
}

/// Returns the cores of its nodes. If muster plan does not know them, each counts like the machine that made the study.
int cores_of(study const& results, scaling_row const& row) {
    for (auto const& point : results.points)
        if (point.ranks == row.ranks && point.cores > 0) return point.cores;
    return static_cast<int>(std::min<std::int64_t>(std::int64_t{results.machine.cores} * row.nodes, 1'000'000'000));
}

scaling_row make_row(runs const& all, study const& results) {
    auto const& plan = results.plan;
    scaling_row row;
    row.ranks = all.front()->ranks;
    std::vector<outlying_run> judged;
    runs good;
    for (auto const* run : all) {
        row.nodes = std::max(row.nodes, run->nodes);
        row.oversubscribed |= run->oversubscribed;
        row.simulated |= run->simulated;
        if (run->status == run_status::interrupted) continue;
        if (!run->counts()) {
            if (row.failed++ == 0) row.failure = failure_of(*run);
            row.lost += run->was_made() ? 0 : 1;
            continue;
        }
        good.push_back(run);
        row.others = std::max({row.others, run->load.before, run->load.during.value_or(0)});
        row.crowded |= run->load.crowded();
        row.several_told |= told_in(*run, plan.judged.name).size() > 1;
        if (auto const value = value_of(*run, plan.judged.name, plan)) judged.push_back({run->repetition, *value});
    }
    row.cores = cores_of(results, row);
    row.outliers = outliers_of(judged);
    row.runs = good.size();
    if (!good.empty()) row.metrics = measure_all(good, plan);
    return row;
}

std::optional<speedup_ratio> speedup_of(scaling_row const& row, scaling_row const& base, study_plan const& plan) {
    auto const *mine = row.find(plan.judged.name), *other = base.find(plan.judged.name);
    if (mine == nullptr || other == nullptr) return {};
    auto const &a = mine->value, &b = other->value;
    if (!(a.smallest > 0 && b.smallest > 0)) return {};
    if (&row == &base) return speedup_ratio{};
    double const work = plan.series == work_series::weak && !plan.judged.rate ? double(row.ranks) / base.ranks : 1;
    speedup_ratio out;
    out.value = plan.judged.rate ? a.median / b.median : work * b.median / a.median;
    out.low = plan.judged.rate ? a.spread.low / b.spread.high : work * b.spread.low / a.spread.high;
    out.high = plan.judged.rate ? a.spread.high / b.spread.low : work * b.spread.high / a.spread.low;
    out.has_spread = a.count > 1 && b.count > 1;
    out.within_spread = out.has_spread && out.low <= 1 && out.high >= 1;
    return out;
}

}  // namespace

metric_choice choice_of(std::string const& name, study_plan const& plan) {
    for (auto const& choice : plan.choices)
        if (choice.name == name) return choice;
    return {name};
}

std::optional<double> value_of(study_run const& run, std::string const& name, study_plan const& plan) {
    if (name == wall) return run.wall_s;
    auto const told = told_in(run, name);
    if (told.empty()) return {};
    return chosen_value(told, choice_of(name, plan));
}

row_metric const* scaling_row::find(std::string_view name) const noexcept {
    auto const found = std::ranges::find(metrics, name, &row_metric::name);
    return found == metrics.end() ? nullptr : &*found;
}

double scaling_row::median_of(std::string_view name) const noexcept {
    auto const* found = find(name);
    return found == nullptr ? 0 : found->value.median;
}

std::vector<std::string> metric_names(std::vector<scaling_row> const& rows, std::string const& judged) {
    std::vector<std::string> out{judged};
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (metric.name != wall && std::ranges::find(out, metric.name) == out.end()) out.push_back(metric.name);
    if (judged != wall) out.emplace_back(wall);
    return out;
}

scaling_row const* base_row(std::vector<scaling_row> const& rows, study_plan const& plan) noexcept {
    auto const found = std::find_if(rows.begin(), rows.end(), [&](auto const& r) { return r.find(plan.judged.name) != nullptr; });
    return found == rows.end() ? nullptr : &*found;
}

scaling_row const* best_row(std::vector<scaling_row> const& rows, study_plan const& plan) noexcept {
    auto const* base = base_row(rows, plan);
    auto const counts = [&](scaling_row const& row) { return row.speedup && &row != base && !row.oversubscribed; };
    bool const enough_cores = std::ranges::any_of(rows, counts);
    scaling_row const *fastest = nullptr, *largest = base;
    for (auto const& row : rows) {
        if (!row.speedup || &row == base || (enough_cores && !counts(row))) continue;
        largest = &row;
        if (!row.speedup->within_spread && row.speedup->value > 1 &&
            (fastest == nullptr || row.speedup->value > fastest->speedup->value))
            fastest = &row;
    }
    return fastest != nullptr ? fastest : largest;
}

std::vector<scaling_row> scaling_rows(study const& results) {
    std::map<int, runs> by_ranks;
    for (auto const& run : results.runs)
        if (!run.warmup) by_ranks[run.ranks].push_back(&run);
    std::vector<scaling_row> rows;
    for (auto const& [ranks, all] : by_ranks) rows.push_back(make_row(all, results));
    auto const* base = base_row(rows, results.plan);
    if (base == nullptr) return rows;
    for (auto& row : rows) {
        row.speedup = speedup_of(row, *base, results.plan);
        if (row.speedup) row.efficiency = row.speedup->value * base->ranks / row.ranks;
    }
    return rows;
}

std::vector<outlying_run> outliers_of(std::vector<outlying_run> const& values) {
    if (values.size() < 4) return {};
    std::vector<double> all, distances;
    for (auto const& each : values) all.push_back(each.value);
    double const middle = median(all);
    for (double const value : all) distances.push_back(std::abs(value - middle));
    double const usual = std::max(5 * median(distances), 0.2 * std::abs(middle));
    std::vector<outlying_run> out;
    for (auto const& each : values)
        if (std::abs(each.value - middle) > usual) out.push_back(each);
    return out;
}

study_progress progress_of(study const& results) {
    study_progress out;
    out.repeats = results.plan.repeats;
    std::vector<int> ranks;
    for (auto const& point : results.points) ranks.push_back(point.ranks);
    for (int const n : ranks.empty() ? results.plan.ranks : ranks) {
        auto const made = std::ranges::count_if(results.runs, [&](study_run const& run) {
            return run.ranks == n && !run.warmup && run.status != run_status::interrupted && run.was_made() &&
                   run.repetition < out.repeats;
        });
        out.planned += out.repeats;
        out.made += static_cast<int>(made);
        if (made < out.repeats) out.missing.push_back({n, static_cast<int>(made)});
    }
    return out;
}

}  // namespace muster
