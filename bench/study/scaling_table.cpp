#include "bench/study/scaling_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "base/text_table.hpp"

namespace muster {

namespace {

constexpr std::size_t most_columns = 5;  // of metrics beside the judged one
constexpr std::string_view wall = "wall_s";

using runs = std::vector<study_run const*>;

metric_choice choice_of(std::string const& name, study_plan const& plan) {
    for (auto const& choice : plan.choices)
        if (choice.name == name) return choice;
    return {name};
}

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
    auto const judged = std::find_if(out.begin(), out.end(), [&](auto const& m) { return m.name == plan.judged.name; });
    if (judged != out.end()) std::rotate(out.begin(), judged, judged + 1);
    return out;
}

scaling_row make_row(runs const& all, study_plan const& plan) {
    scaling_row row;
    row.ranks = all.front()->ranks;
    runs good;
    for (auto const* run : all) {
        row.nodes = std::max(row.nodes, run->nodes);
        row.oversubscribed |= run->oversubscribed;
        row.simulated |= run->simulated;
        if (run->status == run_status::interrupted) continue;
        if (!run->counts()) {
            if (row.failed++ == 0) row.failure = run->reason;
            continue;
        }
        good.push_back(run);
        row.others = std::max({row.others, run->load.before, run->load.during.value_or(0)});
        row.crowded |= run->load.crowded();
        row.several_told |= told_in(*run, plan.judged.name).size() > 1;
    }
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
    out.within_spread = a.count > 1 && b.count > 1 && out.low <= 1 && out.high >= 1;
    return out;
}

std::string plural(std::size_t n, std::string_view one) {
    return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

std::string label(row_metric const& metric) {
    bool const said =
        metric.unit.empty() || metric.name.ends_with("_" + metric.unit) || metric.unit.find("/s") != std::string::npos;
    return said ? metric.name : fmt::format("{} ({})", metric.name, metric.unit);
}

/// The metrics that have a column, of all rows, in the order of the first row that has any.
std::vector<std::string> columns_of(std::vector<scaling_row> const& rows, study_plan const& plan) {
    std::vector<std::string> out;
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (metric.name != plan.judged.name && metric.name != wall && out.size() < most_columns &&
                std::find(out.begin(), out.end(), metric.name) == out.end())
                out.push_back(metric.name);
    if (plan.judged.name != wall) out.emplace_back(wall);
    return out;
}

std::string header_of(std::vector<scaling_row> const& rows, std::string const& name) {
    for (auto const& row : rows)
        if (auto const* found = row.find(name)) return label(*found);
    return name;
}

std::string series_text(study_plan const& plan) {
    if (plan.series == work_series::strong)
        return plan.batch ? fmt::format("strong series: batch {} over all ranks", *plan.batch)
                          : "strong series: the same work for all";
    if (plan.series == work_series::weak)
        return plan.batch ? fmt::format("weak series: batch {} a rank; speed-up is of the work done in a second", *plan.batch)
                          : "weak series: as much work for each rank; speed-up is of the work done in a second";
    return "work as the program divides it";
}

/// What the spreads are, by the smallest and largest numbers of runs.
std::string spread_text(std::vector<scaling_row> const& rows) {
    std::size_t least = SIZE_MAX, most = 0;
    for (auto const& row : rows) {
        if (row.runs == 0) continue;
        least = std::min(least, row.runs);
        most = std::max(most, row.runs);
    }
    auto const number = least == most ? fmt::format("{} each", plural(least, "run")) : fmt::format("{} to {} runs", least, most);
    return fmt::format("medians of {}{}", number,
                       least < 2 ? ""
                       : least < runs_for_interval
                           ? fmt::format("; a range is smallest to largest, an interval needs {} runs", runs_for_interval)
                           : "; CI: interval of the median");
}

std::string closing_text(study const& s, std::vector<scaling_row> const& rows) {
    auto const* base = base_row(rows, s.plan);
    if (base == nullptr) {
        bool const any = std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.runs > 0; });
        if (!any) return "no run ended well: there is nothing to compare\n";
        return fmt::format("no run told the metric {}: nothing is compared; print 'muster-metric: {} VALUE', or see --metric\n",
                           s.plan.judged.name, s.plan.judged.name);
    }
    auto const& judged = *base->find(s.plan.judged.name);
    auto out = fmt::format("{}; speed-up against {} ({} {}{}); {}\n", spread_text(rows), plural(std::size_t(base->ranks), "rank"),
                           s.plan.judged.name, format_value(judged.value.median), judged.unit.empty() ? "" : " " + judged.unit,
                           series_text(s.plan));
    if (std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.several_told; }) &&
        choice_of(s.plan.judged.name, s.plan).across == "rank")
        out += fmt::format("note: several ranks told {}: the lowest rank's counts; give --take {}=last,mean for all\n",
                           s.plan.judged.name, s.plan.judged.name);
    return out;
}

}  // namespace

std::optional<double> value_of(study_run const& run, std::string const& name, study_plan const& plan) {
    if (name == wall) return run.wall_s;
    auto const told = told_in(run, name);
    if (told.empty()) return {};
    return chosen_value(told, choice_of(name, plan));
}

row_metric const* scaling_row::find(std::string_view name) const noexcept {
    auto const found = std::find_if(metrics.begin(), metrics.end(), [&](auto const& m) { return m.name == name; });
    return found == metrics.end() ? nullptr : &*found;
}

double scaling_row::median_of(std::string_view name) const noexcept {
    auto const* found = find(name);
    return found == nullptr ? 0 : found->value.median;
}

scaling_row const* base_row(std::vector<scaling_row> const& rows, study_plan const& plan) noexcept {
    auto const found = std::find_if(rows.begin(), rows.end(), [&](auto const& r) { return r.find(plan.judged.name) != nullptr; });
    return found == rows.end() ? nullptr : &*found;
}

std::vector<scaling_row> scaling_rows(study const& results) {
    std::map<int, runs> by_ranks;
    for (auto const& run : results.runs)
        if (!run.warmup) by_ranks[run.ranks].push_back(&run);
    std::vector<scaling_row> rows;
    for (auto const& [ranks, all] : by_ranks) rows.push_back(make_row(all, results.plan));
    auto const* base = base_row(rows, results.plan);
    if (base == nullptr) return rows;
    for (auto& row : rows) {
        row.speedup = speedup_of(row, *base, results.plan);
        if (row.speedup) row.efficiency = row.speedup->value * base->ranks / row.ranks;
    }
    return rows;
}

std::string scaling_note(scaling_row const& row, int cores) {
    std::vector<std::string> notes;
    if (row.failed > 0 && row.runs == 0)
        notes.push_back(fmt::format("failed: {}", row.failure));
    else if (row.failed > 0)
        notes.push_back(fmt::format("{} of {} failed: {}", row.failed, row.failed + row.runs, row.failure));
    if (row.oversubscribed)
        notes.push_back(row.nodes > 1
                            ? fmt::format("oversubscribed: more ranks than cores on a node")
                            : fmt::format("oversubscribed: {} ranks on {}", row.ranks, plural(std::size_t(cores), "core")));
    if (row.crowded) notes.push_back(fmt::format("busy: others used up to {:.1f} CPUs", row.others));
    if (row.simulated) notes.emplace_back("simulated");
    return join(notes, "; ");
}

std::string format_value(double value) {
    if (!std::isfinite(value)) return fmt::format("{}", value);
    double const size = std::abs(value);
    int const digits = size >= 100 || size == 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
    return fmt::format("{:.{}f}", value, digits);
}

std::string format_spread(summary const& value, double unit) {
    if (value.count < 2) return "one run";
    if (value.count < runs_for_interval)
        return fmt::format("{} to {} (range)", format_value(value.smallest * unit), format_value(value.largest * unit));
    return fmt::format("{} to {} ({:.0f}% CI)", format_value(value.spread.low * unit), format_value(value.spread.high * unit),
                       100 * value.spread.confidence);
}

std::string format_speedup(scaling_row const& row) {
    if (!row.speedup) return "-";
    return row.speedup->within_spread ? "within the spread" : fmt::format("{:.2f}", row.speedup->value);
}

std::string format_efficiency(scaling_row const& row) {
    if (!row.speedup || row.speedup->within_spread) return "-";
    return fmt::format("{:.0f}%", 100 * row.efficiency);
}

std::string scaling_text(study const& results) {
    auto const rows = scaling_rows(results);
    auto const& plan = results.plan;
    auto const columns = columns_of(rows, plan);
    bool const nodes = std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.nodes > 1; });
    std::vector<std::string> header{"ranks"};
    if (nodes) header.emplace_back("nodes");
    header.insert(header.end(), {header_of(rows, plan.judged.name), "spread", "speed-up", "efficiency"});
    for (auto const& name : columns) header.push_back(header_of(rows, name));
    header.emplace_back("note");
    std::vector<std::vector<std::string>> cells{header};
    for (auto const& r : rows) {
        auto const* judged = r.find(plan.judged.name);
        std::vector<std::string> row{std::to_string(r.ranks)};
        if (nodes) row.push_back(std::to_string(r.nodes));
        row.insert(row.end(), {judged ? format_value(judged->value.median) : "-", judged ? format_spread(judged->value) : "-",
                               format_speedup(r), format_efficiency(r)});
        for (auto const& name : columns) row.push_back(r.find(name) ? format_value(r.median_of(name)) : "-");
        row.push_back(scaling_note(r, results.machine.cores));
        cells.push_back(row);
    }
    auto out = align_columns(cells) + closing_text(results, rows);
    for (auto const& note : plan.notes) out += fmt::format("note: {}\n", note);
    if (std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.crowded; }) || results.load.crowded_before())
        out += fmt::format("busy: {}; these figures mean little\n", results.load.crowded_before()
                                                                        ? crowd_text(results.load) + " before the runs"
                                                                        : "other programs worked during the runs noted above");
    return out;
}

}  // namespace muster
