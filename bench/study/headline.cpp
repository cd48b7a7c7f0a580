#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

/// Returns "Provisional (6 of 9 runs, 1 failed, a busy machine): ", or "" if nothing is wrong.
std::string reservations(study const& s, std::vector<scaling_row> const& rows, study_headline& out) {
    std::vector<std::string> all;
    auto const progress = progress_of(s);
    std::size_t failed = 0, outliers = 0;
    for (auto const& row : rows) failed += row.failed - row.lost, outliers += row.outliers.size();
    if (!progress.missing.empty()) all.push_back(fmt::format("{} of {} runs", progress.made, progress.planned));
    if (failed > 0) all.push_back(fmt::format("{} failed", failed));
    if (outliers > 0) all.push_back(outliers == 1 ? "an outlier" : fmt::format("{} outliers", outliers));
    if (s.load.crowded_before() || std::ranges::any_of(rows, &scaling_row::crowded)) all.emplace_back("a busy machine");
    if (std::ranges::any_of(rows, &scaling_row::simulated)) all.emplace_back("simulated in part");
    out.values.insert(out.values.end(), {{"made", static_cast<double>(progress.made)},
                                         {"planned", static_cast<double>(progress.planned)},
                                         {"failed", static_cast<double>(failed)},
                                         {"outliers", static_cast<double>(outliers)}});
    return all.empty() ? std::string() : fmt::format("Provisional ({}): ", join(all, ", "));
}

std::string on_nodes(scaling_row const& row) {
    return row.nodes > 1 ? fmt::format("{} ({} nodes)", ranks_text(row.ranks), row.nodes) : ranks_text(row.ranks);
}

std::string measured_text(scaling_row const& row, std::string const& metric, study_headline& out) {
    auto const& judged = *row.find(metric);
    out.values.emplace_back("median", judged.value.median);
    out.names.push_back(metric);
    return fmt::format("{} {}{}", metric, format_value(judged.value.median), judged.unit.empty() ? "" : " " + judged.unit);
}

/// Returns the first of its causes.
std::string greatest_cost(study const& s, study_headline& out) {
    for (auto const& each : find_causes(s)) {
        if (each.why == cause::oversubscribed || each.why == cause::shared_core || each.figure >= 1) continue;
        out.values.insert(out.values.end(), {{"cost", each.figure}, {"cost_ranks", each.ranks}});
        return fmt::format("; limited by {} ({:.{}f}% at {})",
                           each.why == cause::serial_part ? "the serial part" : to_string(each.why), 100 * each.figure,
                           each.figure < 0.1 ? 1 : 0, ranks_text(each.ranks));
    }
    return {};
}

std::string compared_text(study const& s, std::vector<scaling_row> const& rows, scaling_row const& base, study_headline& out) {
    auto const *last = &base, *best = best_row(rows, s.plan);
    for (auto const& row : rows)
        if (row.speedup && row.oversubscribed == best->oversubscribed) last = &row;
    bool const weak = s.plan.series == work_series::weak;
    out.values.insert(out.values.end(), {{"base_ranks", base.ranks}, {"last_ranks", last->ranks}, {"last_nodes", last->nodes}});
    if (best == &base) return fmt::format("{} on {}: {}", s.name, on_nodes(base), measured_text(base, s.plan.judged.name, out));
    if (best->speedup->within_spread || best->speedup->value <= 1)
        return fmt::format("{} is {} on {} than on {}: {}", s.name,
                           best->speedup->within_spread ? "not measurably faster" : "slower", on_nodes(*best), base.ranks,
                           measured_text(*best, s.plan.judged.name, out));
    auto const& speedup = *best->speedup;
    out.values.insert(out.values.end(), {{"ranks", best->ranks},
                                         {"nodes", best->nodes},
                                         {"speedup", speedup.value},
                                         {"low", speedup.low},
                                         {"high", speedup.high},
                                         {"efficiency", best->efficiency}});
    auto const spread = speedup.has_spread ? fmt::format(" ({:.2f} to {:.2f})", speedup.low, speedup.high) : std::string();
    return fmt::format("{} {} {:.2f} times as {} on {} as on {}{}, {:.0f}% efficiency: {}{}", s.name, weak ? "does" : "is",
                       speedup.value, weak ? "much work a second" : "fast", on_nodes(*best), base.ranks, spread,
                       100 * best->efficiency, measured_text(*best, s.plan.judged.name, out),
                       best->oversubscribed ? "; it has more ranks than cores"
                       : best == last       ? ""
                                            : fmt::format("; up to {}, more are no faster", ranks_text(last->ranks)));
}

}  // namespace

study_headline headline_of(study const& s) {
    study_headline out;
    out.names.push_back(s.name);
    auto const rows = scaling_rows(s);
    auto const begin = reservations(s, rows, out);
    auto const* base = base_row(rows, s.plan);
    bool const none_ended = std::ranges::all_of(rows, [](auto const& row) { return row.runs == 0; });
    if (base == nullptr && none_ended)
        out.text = begin + s.name + ": no run ended well";
    else if (base == nullptr)
        out.text = begin + s.name + ": no run printed what it is judged by, " + s.plan.judged.name,
        out.names.push_back(s.plan.judged.name);
    else
        out.text = begin + compared_text(s, rows, *base, out) + greatest_cost(s, out);
    return out;
}

}  // namespace muster
