#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

/// Returns "Provisional (6 of 9 runs, 1 failed, a busy machine): ", or "" if nothing is wrong.
std::string reservations(study const& s, std::vector<scaling_row> const& rows) {
    std::vector<std::string> all;
    auto const progress = progress_of(s);
    std::size_t failed = 0, outliers = 0;
    for (auto const& row : rows) failed += row.failed - row.lost, outliers += row.outliers.size();
    if (!progress.missing.empty()) all.push_back(fmt::format("{} of {} runs", progress.made, progress.planned));
    if (failed > 0) all.push_back(fmt::format("{} failed", failed));
    if (outliers > 0) all.push_back(outliers == 1 ? "an outlier" : fmt::format("{} outliers", outliers));
    if (s.load.crowded_before() || std::ranges::any_of(rows, &scaling_row::crowded)) all.emplace_back("a busy machine");
    if (std::ranges::any_of(rows, &scaling_row::simulated)) all.emplace_back("simulated in part");
    return all.empty() ? std::string() : fmt::format("Provisional ({}): ", join(all, ", "));
}

std::string on_nodes(scaling_row const& row) {
    return row.nodes > 1 ? fmt::format("{} ({} nodes)", ranks_text(row.ranks), row.nodes) : ranks_text(row.ranks);
}

std::string measured_text(scaling_row const& row, std::string const& metric) {
    auto const& judged = *row.find(metric);
    return fmt::format("{} {}{}", metric, format_value(judged.value.median), judged.unit.empty() ? "" : " " + judged.unit);
}

/// Returns the first of its causes.
std::string greatest_cost(study const& s) {
    for (auto const& each : find_causes(s)) {
        if (each.why == cause::oversubscribed || each.why == cause::shared_core || each.figure >= 1) continue;
        return fmt::format("; limited by {} ({} at {})", each.why == cause::serial_part ? "the serial part" : to_string(each.why),
                           percent_text(each.figure), ranks_text(each.ranks));
    }
    return {};
}

std::string compared_text(study const& s, std::vector<scaling_row> const& rows, scaling_row const& base) {
    auto const *last = &base, *best = best_row(rows, s.plan);
    for (auto const& row : rows)
        if (row.speedup && row.oversubscribed == best->oversubscribed) last = &row;
    bool const weak = s.plan.series == work_series::weak;
    if (best == &base) return fmt::format("{} on {}: {}", s.name, on_nodes(base), measured_text(base, s.plan.judged.name));
    if (best->speedup->within_spread || best->speedup->value <= 1)
        return fmt::format("{} is {} on {} than on {}: {}", s.name,
                           best->speedup->within_spread ? "not measurably faster" : "slower", on_nodes(*best), base.ranks,
                           measured_text(*best, s.plan.judged.name));
    auto const& speedup = *best->speedup;
    auto const spread = speedup.has_spread ? fmt::format(" ({:.2f} to {:.2f})", speedup.low, speedup.high) : std::string();
    return fmt::format("{} {} {:.2f} times as {} on {} as on {}{}, {:.0f}% efficiency: {}{}", s.name, weak ? "does" : "is",
                       speedup.value, weak ? "much work a second" : "fast", on_nodes(*best), base.ranks, spread,
                       100 * best->efficiency, measured_text(*best, s.plan.judged.name),
                       best->oversubscribed ? "; it has more ranks than cores"
                       : best == last       ? ""
                                            : fmt::format("; up to {}, more are no faster", ranks_text(last->ranks)));
}

}  // namespace

std::string headline_of(study const& s) {
    auto const rows = scaling_rows(s);
    auto const begin = reservations(s, rows);
    if (auto const* base = base_row(rows, s.plan)) return begin + compared_text(s, rows, *base) + greatest_cost(s);
    if (std::ranges::all_of(rows, [](auto const& row) { return row.runs == 0; })) return begin + s.name + ": no run ended well";
    return begin + s.name + ": no run printed what it is judged by, " + s.plan.judged.name;
}

}  // namespace muster
