#include "bench/report/report_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.hpp"

namespace muster {

namespace {

/// "-" for no value.
std::string number(std::optional<double> value) {
    return value && std::isfinite(*value) ? format_value(*value) : "-";
}

std::string two_digits(std::optional<double> value) {
    return value && std::isfinite(*value) ? fmt::format("{:.2f}", *value) : "-";
}

std::string with_blank(std::string const& unit) {
    return unit.empty() ? unit : " " + unit;
}

/// A tile that tells of something bad: its value and what it means.
report_tile tile_of(bad_news const& news) {
    auto const of = [&](std::string_view meaning) { return fmt::format("of {} {}", news.of, meaning); };
    report_tile tile{to_string(news.kind), std::to_string(news.count), {}};
    switch (news.kind) {
        case bad_news_kind::unfinished:
            tile.value = fmt::format("{} of {}", news.count, news.of);
            tile.what = "runs were made: the study is unfinished";
            break;
        case bad_news_kind::failed: tile.what = of("runs failed"); break;
        case bad_news_kind::broken: tile.what = of("bounds broken, see below"); break;
        case bad_news_kind::busy:
            tile.value = "busy";
            tile.what = "other programs worked: these figures mean little";
            break;
        case bad_news_kind::simulated:
            tile.value = "simulated";
            tile.what = "rows that are marked so were not measured";
            break;
        case bad_news_kind::cause:
            tile.value = news.share ? percent_text(*news.share) : std::string(to_string(news.why));
            tile.what = fmt::format("{}at {}: see what limits it", news.share ? fmt::format("{} ", to_string(news.why)) : "",
                                    ranks_text(news.ranks));
    }
    return tile;
}

report_tile tile_of(best_point const& best) {
    auto const& judged = best.judged.value;
    auto const value = number(judged.median) + with_blank(best.judged.unit);
    bool const compared = best.speedup && !best.base;
    auto what =
        fmt::format("on {}{}: {} {}, {}", ranks_text(best.ranks), best.nodes > 1 ? fmt::format(", {} nodes", best.nodes) : "",
                    best.judged.name, value, format_spread(judged));
    if (!compared && best.others > 0) what += "; more ranks are not measurably faster";
    if (compared && best.speedup->has_spread)
        what += fmt::format("; speed-up {:.2f} to {:.2f}", best.speedup->low, best.speedup->high);
    if (compared) what += fmt::format(", efficiency {:.0f}%", 100 * best.efficiency);
    return {"best", compared ? two_digits(best.speedup->value) + "x" : value, what};
}

std::string median_cell(scaling_row const& row, std::string const& metric) {
    auto const* found = row.find(metric);
    return number(found ? std::optional(found->value.median) : std::nullopt);
}

}  // namespace

std::vector<report_tile> tiles_of(study_summary const& study) {
    std::vector<report_tile> out;
    if (study.best) out.push_back(tile_of(*study.best));
    for (auto const& news : study.bad) out.push_back(tile_of(news));
    return out;
}

report_table scaling_table_of(study_summary const& study) {
    bool const nodes = std::ranges::any_of(study.rows, [](auto const& row) { return row.nodes > 1; });
    bool const spreads = has_spreads(study.rows, study.judged);
    report_table out;
    auto const column = [&](std::string title, std::string key) {
        out.head.push_back(std::move(title));
        out.keys.push_back(std::move(key));
    };
    column("ranks", "ranks");
    if (nodes) column("nodes", "nodes");
    column("runs", "runs");
    column(with_unit(study.rows, study.judged), "judged");
    if (spreads) column("spread", "spread");
    column("speed-up", "speedup");
    column("efficiency", "efficiency");
    column("note", "note");
    for (auto const& row : study.rows) {
        auto& cells = out.rows.emplace_back();
        cells.push_back(std::to_string(row.ranks));
        if (nodes) cells.push_back(std::to_string(row.nodes));
        cells.push_back(std::to_string(row.runs));
        cells.push_back(median_cell(row, study.judged));
        auto const* judged = row.find(study.judged);
        if (spreads) cells.push_back(judged ? format_spread(judged->value) : "-");
        cells.insert(cells.end(), {format_speedup(row), format_efficiency(row), scaling_note(row)});
    }
    return out;
}

report_table metrics_table_of(study_summary const& study) {
    report_table out{{"median"}, {}, {}};
    for (auto const& row : study.rows) out.head.push_back(ranks_text(row.ranks));
    out.head.emplace_back();
    for (std::size_t i = 1; i < study.metrics.size(); ++i) {
        auto& cells = out.rows.emplace_back();
        cells.push_back(with_unit(study.rows, study.metrics[i]));
        for (auto const& row : study.rows) cells.push_back(median_cell(row, study.metrics[i]));
        cells.emplace_back();
    }
    return out;
}

std::string base_text(study_summary const& study) {
    if (!study.base_ranks) return {};
    auto const base = std::ranges::find(study.rows, *study.base_ranks, &scaling_row::ranks);
    if (base == study.rows.end()) return {};
    return fmt::format("{}The base of every speed-up is {} at {} {}.",
                       has_spreads(study.rows, study.judged) ? "Medians. " : "One run a row: there is no spread. ",
                       ranks_text(base->ranks), study.judged, number(base->median_of(study.judged)));
}

report_table side_by_side(report_document const& document) {
    auto const& studies = document.studies;
    report_table out{{"ranks"}, {}, {}};
    std::map<int, std::vector<scaling_row const*>> by_ranks;  // of each study; null where it has none
    for (std::size_t i = 0; i < studies.size(); ++i) {
        out.head.push_back(
            fmt::format("{}: {}, speed-up, efficiency", studies[i].label, with_unit(studies[i].rows, studies[i].judged)));
        for (auto const& row : studies[i].rows) {
            auto& of = by_ranks[row.ranks];
            of.resize(studies.size());
            of[i] = &row;
        }
    }
    out.head.emplace_back();
    for (auto const& [ranks, of] : by_ranks) {
        auto& cells = out.rows.emplace_back();
        cells.push_back(std::to_string(ranks));
        for (std::size_t i = 0; i < of.size(); ++i) {
            auto const* row = of[i];
            bool const known = row != nullptr && row->find(studies[i].judged) != nullptr;
            cells.push_back(known ? median_cell(*row, studies[i].judged) : "-");
            if (!known) continue;
            for (auto const& ratio : {format_speedup(*row), format_efficiency(*row)})
                if (ratio != "-") cells.back() += ", " + ratio;
        }
        cells.emplace_back();
    }
    return out;
}

std::string busbw_title(busbw_table const& table) {
    return fmt::format("{} {} on {}", table.collective, table.type, ranks_text(table.ranks));
}

report_table busbw_table_of(busbw_table const& table) {
    report_table out{{"bytes"}, {}, {}};
    std::map<double, std::map<std::size_t, double>> by_size;  // of each curve, the first
    for (std::size_t c = 0; c < table.curves.size(); ++c) {
        auto const& [name, simulated, points] = table.curves[c];
        out.head.push_back(name + (simulated ? " (simulated)" : "") + ", GB/s");
        for (auto const& point : points) by_size[point.bytes].try_emplace(c, point.busbw_gbs);
    }
    for (auto const& [bytes, of] : by_size) {
        auto& cells = out.rows.emplace_back();
        cells.push_back(fmt::format("{:.0f}", bytes));
        for (std::size_t c = 0; c < table.curves.size(); ++c) cells.push_back(of.contains(c) ? number(of.at(c)) : "");
    }
    return out;
}

namespace {

constexpr std::size_t metrics_of_a_table = 6;

/// The time of day, where that says it all.
std::string time_text(std::string const& started, std::string const& created) {
    bool const same_day = started.size() >= 19 && created.size() >= 10 && started.compare(0, 10, created, 0, 10) == 0;
    return same_day ? started.substr(11, 8) : started;
}

/// Returns a row for each run: its kind, its end, the judged metric and wall_s.
report_table runs_of(study_summary const& study, std::vector<std::string> const& metrics) {
    report_table out{{"order", "ranks", "repeat"}, {}, {}};
    for (auto const& name : metrics) out.head.push_back(with_unit(study.rows, name));
    out.head.insert(out.head.end(), {"started", "load before", "others' CPUs", "note"});
    for (auto const& run : study.runs) {
        auto& cells = out.rows.emplace_back();
        cells = {std::to_string(run.order), std::to_string(run.ranks), run.warmup ? "warm-up" : std::to_string(run.repetition)};
        for (auto const& name : metrics) cells.push_back(number(run.find(name)));
        cells.insert(cells.end(), {time_text(run.started, study.created), two_digits(run.load_average), two_digits(run.others),
                                   run.status == run_status::ok ? "" : run.failure});
    }
    return out;
}

}  // namespace

std::vector<report_table> runs_tables_of(study_summary const& study) {
    auto others = study.metrics;
    std::vector<std::string> first{others.front()};
    others.erase(others.begin());
    if (!others.empty()) first.push_back(others.back()), others.pop_back();  // wall_s
    std::vector<report_table> out{runs_of(study, first)};
    for (std::size_t begin = 0; begin < others.size(); begin += metrics_of_a_table) {
        report_table table{{"order", "ranks"}, {}, {}};
        auto const end = std::min(others.size(), begin + metrics_of_a_table);
        for (auto m = begin; m < end; ++m) table.head.push_back(with_unit(study.rows, others[m]));
        table.head.emplace_back();
        for (auto const& run : study.runs) {
            auto& cells = table.rows.emplace_back();
            cells = {std::to_string(run.order), std::to_string(run.ranks)};
            for (auto m = begin; m < end; ++m) cells.push_back(number(run.find(others[m])));
            cells.emplace_back();
        }
        out.push_back(std::move(table));
    }
    return out;
}

}  // namespace muster
