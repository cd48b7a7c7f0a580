#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

constexpr std::size_t screen = 80, longest_title = 16;

std::string series_text(study_plan const& plan) {
    if (plan.series == work_series::strong)
        return plan.batch ? fmt::format("strong series: batch {} over all ranks", *plan.batch)
                          : "strong series: the same work for all";
    if (plan.series == work_series::weak)
        return plan.batch ? fmt::format("weak series: batch {} a rank; speed-up is of the work done in a second", *plan.batch)
                          : "weak series: as much work for each rank; speed-up is of the work done in a second";
    return "work as the program divides it";
}

/// Explains the spreads, by the smallest and largest numbers of runs.
std::string spread_text(std::vector<scaling_row> const& rows) {
    std::size_t least = SIZE_MAX, most = 0;
    for (auto const& row : rows) {
        if (row.runs == 0) continue;
        least = std::min(least, row.runs);
        most = std::max(most, row.runs);
    }
    if (most == 1)
        return fmt::format("one run a row: there is no spread; give more --repeats ({} for an interval)", runs_for_interval);
    auto const number = least == most ? fmt::format("{} each", counted(least, "run")) : fmt::format("{} to {} runs", least, most);
    return fmt::format("medians of {}{}", number,
                       least < runs_for_interval
                           ? fmt::format("; a range is smallest to largest, an interval needs {} runs", runs_for_interval)
                           : "; CI: interval of the median");
}

std::string closing_text(study const& s, std::vector<scaling_row> const& rows) {
    auto const* base = base_row(rows, s.plan);
    auto const& name = s.plan.judged.name;
    if (base == nullptr) {
        bool const any = std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.runs > 0; });
        if (!any) return "no run ended well: there is nothing to compare\n";
        return paragraph(fmt::format(
            "no run printed the metric {0}: nothing is compared; print 'muster-metric: {0} VALUE', or see --metric", name));
    }
    auto const& judged = *base->find(name);
    auto out = paragraph(spread_text(rows)) +
               paragraph(fmt::format("speed-up against {} ({} {}{}); {}", counted(std::size_t(base->ranks), "rank"), name,
                                     format_value(judged.value.median), judged.unit.empty() ? "" : " " + judged.unit,
                                     series_text(s.plan)));
    if (auto const one = choice_of(name, s.plan); one.across == "rank" && std::ranges::any_of(rows, &scaling_row::several_told))
        out += paragraph(fmt::format(
            "note: several ranks printed {0}: the lowest rank's counts; give --take {0}={1},mean for all", name, one.which));
    return out;
}

/// Returns "3.33" and "42%" in two columns, or one text over both.
std::string ratio_cell(scaling_row const& row) {
    bool const hidden = row.speedup && row.speedup->within_spread;
    return hidden ? fmt::format("{:>20}", format_speedup(row))
                  : fmt::format("{:>8}  {:>10}", format_speedup(row), format_efficiency(row));
}

/// Returns the kind of spread of all rows that have one; "" if it differs.
std::string kind_of_spread(std::vector<scaling_row> const& rows, std::string const& judged) {
    std::string kind;
    for (auto const& row : rows) {
        auto const* found = row.find(judged);
        if (found == nullptr) continue;
        auto const text = format_spread(found->value);
        auto const begin = text.find(" (");
        auto const its = begin == text.npos ? text : text.substr(begin + 1);
        if (!kind.empty() && its != kind) return {};
        kind = its;
    }
    return kind;
}

std::string main_table(std::vector<scaling_row> const& rows, study_plan const& plan, bool short_spreads) {
    auto const title = with_unit(rows, plan.judged.name), kind = short_spreads ? kind_of_spread(rows, plan.judged.name) : "";
    bool const nodes = std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.nodes > 1; });
    std::vector<std::string> head{"ranks"};
    if (nodes) head.emplace_back("nodes");
    bool const spreads = has_spreads(rows, plan.judged.name);
    head.push_back(title.size() > longest_title ? "median" : title);
    if (spreads) head.push_back(kind.empty() ? "spread" : "spread " + kind);
    head.emplace_back("speed-up  efficiency");
    std::vector<std::vector<std::string>> cells{head};
    for (auto const& r : rows) {
        auto const* judged = r.find(plan.judged.name);
        std::vector<std::string> row{std::to_string(r.ranks)};
        if (nodes) row.push_back(std::to_string(r.nodes));
        auto spread = judged ? format_spread(judged->value) : "-";
        if (!kind.empty()) spread = spread.substr(0, spread.find(" ("));
        row.push_back(judged ? format_value(judged->value.median) : "-");
        if (spreads) row.push_back(spread);
        row.push_back(ratio_cell(r));
        cells.push_back(row);
    }
    return align_columns(cells);
}

std::size_t widest(std::string const& text) {
    std::size_t out = 0;
    for (auto const line : split(text, '\n')) out = std::max(out, line.size());
    return out;
}

/// Returns the other metrics, one a line, in tables whose lines have room for their numbers of ranks.
std::string metric_tables(std::vector<scaling_row> const& rows, study_plan const& plan) {
    auto names = metric_names(rows, plan.judged.name);
    names.erase(names.begin());  // it has the main table
    if (!names.empty() && base_row(rows, plan) == nullptr) names.pop_back();
    if (names.empty()) return {};
    std::string out;
    for (std::size_t begin = 0; begin < rows.size();) {
        std::string table;
        std::size_t end = begin;
        do {
            std::vector<std::vector<std::string>> cells{{"median"}};
            for (std::size_t i = begin; i <= end; ++i) cells[0].push_back(ranks_text(rows[i].ranks));
            for (auto const& name : names) {
                cells.push_back({with_unit(rows, name)});
                for (std::size_t i = begin; i <= end; ++i)
                    cells.back().push_back(rows[i].find(name) ? format_value(rows[i].median_of(name)) : "-");
            }
            auto tried = align_columns(cells);
            if (end > begin && widest(tried) > screen) break;
            table = std::move(tried);
        } while (++end < rows.size());
        out += "\n" + table;
        begin = end;
    }
    return out + "\n";
}

}  // namespace

bool exceeds_base(scaling_row const& row) noexcept {
    return row.speedup && !row.speedup->within_spread && row.efficiency >= 1.005;
}

std::string scaling_note(scaling_row const& row) {
    std::vector<std::string> notes;
    if (row.failed > 0 && row.runs == 0)
        notes.push_back(fmt::format("failed: {}", row.failure));
    else if (row.failed > 0)
        notes.push_back(fmt::format("{} of {} failed: {}", row.failed, row.failed + row.runs, row.failure));
    if (row.oversubscribed)
        notes.push_back(row.ranks > row.cores
                            ? fmt::format("oversubscribed: {} ranks on {}", row.ranks, counted(std::size_t(row.cores), "core"))
                            : "oversubscribed: more ranks than cores on a node");
    for (auto const& each : row.outliers)
        notes.push_back(fmt::format("repeat {} is an outlier: {} against a median of {}", each.repetition + 1,
                                    format_value(each.value), format_value(row.metrics.front().value.median)));
    if (exceeds_base(row)) {
        bool const sure = row.speedup->low * row.efficiency / row.speedup->value > 1;
        notes.emplace_back(sure ? "more than 100% efficiency: the base is slow for its size, or its data fits no cache"
                                : "more than 100% efficiency, but its spread includes less");
    }
    if (row.crowded) notes.push_back(fmt::format("busy: others used up to {:.1f} CPUs", row.others));
    if (row.simulated) notes.emplace_back("simulated");
    return join(notes, "; ");
}

std::string with_unit(std::vector<scaling_row> const& rows, std::string const& metric) {
    for (auto const& row : rows)
        if (auto const* found = row.find(metric)) {
            auto const& unit = found->unit;
            bool const said = unit.empty() || metric.ends_with("_" + unit) || unit.find("/s") != unit.npos;
            return said ? metric : fmt::format("{} ({})", metric, unit);
        }
    return metric;
}

bool has_spreads(std::vector<scaling_row> const& rows, std::string const& metric) {
    return std::ranges::any_of(rows, [&](auto const& row) {
        auto const* found = row.find(metric);
        return found != nullptr && found->value.count > 1;
    });
}

std::string paragraph(std::string const& text) {
    return text_table({text}).text(screen);
}

std::vector<std::string> reservations_of(study const& results, std::vector<scaling_row> const& rows) {
    std::vector<std::string> out;
    if (auto const missing = unfinished_text(progress_of(results)); !missing.empty()) out.push_back("unfinished: " + missing);
    for (auto const& note : results.plan.notes) out.push_back("note: " + note);
    if (std::ranges::any_of(rows, &scaling_row::crowded) || results.load.crowded_before())
        out.push_back(fmt::format("busy: {}; these figures mean little",
                                  results.load.crowded_before() ? crowd_text(results.load) + " before the runs"
                                                                : "other programs worked during the runs noted above"));
    return out;
}

std::string unfinished_text(study_progress const& progress) {
    std::vector<std::string> missing;
    for (auto const& [ranks, made] : progress.missing)
        missing.push_back(fmt::format("{}: {} of {}", ranks_text(ranks), made, progress.repeats));
    if (missing.empty()) return {};
    return fmt::format("{} of {} runs were made ({})", progress.made, progress.planned, join(missing, ", "));
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
    auto out = paragraph(headline_of(results)) + "\n";
    auto table = main_table(rows, plan, false);
    out += widest(table) > screen ? main_table(rows, plan, true) : table;
    for (auto const& row : rows)
        if (auto const note = scaling_note(row); !note.empty())
            out += paragraph(fmt::format("{}: {}", ranks_text(row.ranks), note));
    out += metric_tables(rows, plan) + closing_text(results, rows);
    for (auto const& each : reservations_of(results, rows)) out += paragraph(each);
    return out;
}

}  // namespace muster
