#include "bench/report/report_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster {

namespace {

/// "4.00 to 5.00 (97% CI)", "(range)", "one run", of a summary at that place.
void add_spread(figure_text& to, summary const& of, json_place const& at) {
    if (of.count < 2)
        to.words("one run");
    else if (of.count < runs_for_interval)
        to.figure(of.smallest, at / "smallest").words(" to ").figure(of.largest, at / "largest").words(" (range)");
    else
        to.figure(of.spread.low, at / "low")
            .words(" to ")
            .figure(of.spread.high, at / "high")
            .words(" (")
            .percent(of.spread.confidence, at / "confidence")
            .words(" CI)");
}

std::string with_blank(std::string const& unit) {
    return unit.empty() ? unit : " " + unit;
}

void add_ranks(figure_text& to, int ranks, json_place const& at) {
    to.count(ranks, at).words(ranks == 1 ? " rank" : " ranks");
}

/// A tile that tells of something bad: its value and what it means.
report_tile tile_of(bad_news const& news, json_place const& at, markup how) {
    figure_text value(how), what(how);
    auto const count_of = [&](char const* count, char const* of, std::string_view meaning) {
        value.count(double(news.count), at / count);
        what.words("of ").count(double(news.of), at / of).words(meaning);
    };
    switch (news.kind) {
        case bad_news_kind::unfinished:
            value.count(double(news.count), at / "made").words(" of ").count(double(news.of), at / "planned");
            what.words("runs were made: the study is unfinished");
            break;
        case bad_news_kind::failed: count_of("failed", "made", " runs failed"); break;
        case bad_news_kind::broken: count_of("broken", "judged", " bounds broken, see below"); break;
        case bad_news_kind::busy:
            value.words("busy");
            what.words("other programs worked: these figures mean little");
            break;
        case bad_news_kind::simulated:
            value.words("simulated");
            what.words("rows that are marked so were not measured");
            break;
        case bad_news_kind::cause:
            if (news.share)
                value.percent(*news.share, at / "share", *news.share < 0.1 ? 1 : 0), what.words(to_string(news.why)).words(" ");
            else
                value.words(to_string(news.why));
            what.words("at ");
            add_ranks(what, news.ranks, at / "ranks");
            what.words(": see what limits it");
    }
    return {std::string(to_string(news.kind)), value.text(), what.text()};
}

report_tile tile_of(best_point const& best, json_place const& at, markup how) {
    figure_text value(how), what(how);
    auto const& judged = best.judged.value;
    auto const unit = with_blank(best.judged.unit);
    bool const compared = best.speedup && !best.base;
    auto const ratio_at = at / "speedup";
    if (compared)
        value.figure(best.speedup->value, ratio_at / "value", {2, 1}).words("x");
    else
        value.figure(judged.median, at / "value" / "median").name(unit);
    what.words("on ");
    add_ranks(what, best.ranks, at / "ranks");
    if (best.nodes > 1) what.words(", ").count(best.nodes, at / "nodes").words(" nodes");
    what.words(": ").name(best.judged.name).words(" ").figure(judged.median, at / "value" / "median").name(unit).words(", ");
    add_spread(what, judged, at / "value");
    if (!compared && best.others > 0) what.words("; more ranks are not measurably faster");
    if (compared && best.speedup->has_spread)
        what.words("; speed-up ")
            .figure(best.speedup->low, ratio_at / "low", {2, 1})
            .words(" to ")
            .figure(best.speedup->high, ratio_at / "high", {2, 1});
    if (compared) what.words(", efficiency ").percent(best.efficiency, ratio_at / "efficiency");
    return {"best", value.text(), what.text()};
}

/// The cells of a row's speed-up and efficiency.
void add_ratios(scaling_row const& row, json_place const& at, markup how, std::vector<std::string>& cells) {
    figure_text ratio(how), part(how);
    if (!row.speedup || row.speedup->within_spread) {
        ratio.words(row.speedup ? "within the spread" : "-");
        part.words("-");
    } else {
        ratio.figure(row.speedup->value, at / "speedup" / "value", {2, 1});
        part.percent(row.efficiency, at / "speedup" / "efficiency");
    }
    cells.insert(cells.end(), {ratio.text(), part.text()});
}

/// The text that `write` makes.
template <typename Write>
std::string cell(markup how, Write const& write) {
    figure_text text(how);
    write(text);
    return text.text();
}

std::string median_cell(scaling_row const& row, std::string const& metric, json_place const& at, markup how) {
    auto const* found = row.find(metric);
    return figure_text(how)
        .figure(found ? std::optional(found->value.median) : std::nullopt, at / "metrics" / metric / "median")
        .text();
}

}  // namespace

std::vector<report_tile> tiles_of(study_summary const& study, json_place const& at, markup how) {
    std::vector<report_tile> out;
    auto const tiles = at / "tiles";
    if (study.best) out.push_back(tile_of(*study.best, tiles / std::size_t{0}, how));
    for (auto const& news : study.bad) out.push_back(tile_of(news, tiles / out.size(), how));
    return out;
}

report_table scaling_table_of(study_summary const& study, json_place const& study_at, markup how) {
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
    for (std::size_t r = 0; r < study.rows.size(); ++r) {
        auto const& row = study.rows[r];
        auto const at = study_at / "rows" / r;
        auto const count = [&](double value, char const* name) { return figure_text(how).count(value, at / name).text(); };
        std::vector<std::string> cells{count(row.ranks, "ranks")};
        if (nodes) cells.push_back(count(row.nodes, "nodes"));
        cells.push_back(count(double(row.runs), "runs"));
        cells.push_back(median_cell(row, study.judged, at, how));
        auto const* judged = row.find(study.judged);
        if (spreads)
            cells.push_back(cell(how, [&](figure_text& t) {
                judged ? add_spread(t, judged->value, at / "metrics" / study.judged) : void(t.words("-"));
            }));
        add_ratios(row, at, how, cells);
        cells.push_back(figure_text(how)
                            .sentence(note_of(row), at,
                                      {{at / "ranks", double(row.ranks)},
                                       {at / "nodes", double(row.nodes)},
                                       {at / "runs", double(row.runs)},
                                       {at / "failed", double(row.failed)}})
                            .text());
        out.rows.push_back(std::move(cells));
    }
    return out;
}

report_table metrics_table_of(study_summary const& study, json_place const& study_at, markup how) {
    report_table out{{"median"}, {}, {}};
    for (auto const& row : study.rows) out.head.push_back(ranks_text(row.ranks));
    out.head.emplace_back();
    for (std::size_t i = 1; i < study.metrics.size(); ++i) {
        out.rows.push_back({figure_text(how).name(with_unit(study.rows, study.metrics[i])).text()});
        for (std::size_t r = 0; r < study.rows.size(); ++r)
            out.rows.back().push_back(median_cell(study.rows[r], study.metrics[i], study_at / "rows" / r, how));
        out.rows.back().emplace_back();
    }
    return out;
}

std::string base_text(study_summary const& study, json_place const& at, markup how) {
    if (!study.base_ranks) return {};
    auto const base = std::ranges::find(study.rows, *study.base_ranks, &scaling_row::ranks);
    if (base == study.rows.end()) return {};
    figure_text out(how);
    out.words(has_spreads(study.rows, study.judged) ? "Medians. " : "One run a row: there is no spread. ")
        .words("The base of every speed-up is ");
    add_ranks(out, base->ranks, at / "base_ranks");
    out.words(" at ").name(study.judged).words(" ");
    out.figure(base->median_of(study.judged),
               at / "rows" / static_cast<std::size_t>(base - study.rows.begin()) / "metrics" / study.judged / "median");
    return out.words(".").text();
}

report_table side_by_side(report_document const& document, markup how) {
    struct placed_row {
        scaling_row const* row = nullptr;
        json_place at = json_place();
    };
    auto const& studies = document.studies;
    report_table out{{"ranks"}, {}, {}};
    std::map<int, std::vector<placed_row>> by_ranks;  // of each study; no row where it has none
    for (std::size_t i = 0; i < studies.size(); ++i) {
        out.head.push_back(
            fmt::format("{}: {}, speed-up, efficiency", studies[i].label, with_unit(studies[i].rows, studies[i].judged)));
        for (std::size_t r = 0; r < studies[i].rows.size(); ++r) {
            auto& of = by_ranks[studies[i].rows[r].ranks];
            of.resize(studies.size());
            of[i] = {&studies[i].rows[r], json_place("/studies") / i / "rows" / r};
        }
    }
    out.head.emplace_back();
    for (auto const& [ranks, of] : by_ranks) {
        auto const first = std::ranges::find_if(of, [](auto const& each) { return each.row != nullptr; });
        std::vector<std::string> cells{figure_text(how).count(ranks, first->at / "ranks").text()};
        for (std::size_t i = 0; i < of.size(); ++i) {
            auto const& [row, at] = of[i];
            if (row == nullptr || row->find(studies[i].judged) == nullptr) {
                cells.emplace_back("-");
                continue;
            }
            cells.push_back(median_cell(*row, studies[i].judged, at, how));
            std::vector<std::string> ratios;
            add_ratios(*row, at, how, ratios);
            for (auto const& ratio : ratios)
                if (ratio != "-") cells.back() += ", " + ratio;
        }
        cells.emplace_back();
        out.rows.push_back(std::move(cells));
    }
    return out;
}

std::string busbw_title(busbw_table const& table) {
    return fmt::format("{} {} on {}", table.collective, table.type, ranks_text(table.ranks));
}

report_table busbw_table_of(busbw_table const& table, json_place const& at, markup how) {
    struct placed_point {
        busbw_point const* point;
        json_place at;
    };
    report_table out{{"bytes"}, {}, {}};
    std::map<double, std::map<std::size_t, placed_point>> by_size;  // of each curve
    for (std::size_t c = 0; c < table.curves.size(); ++c) {
        auto const& [name, simulated, points] = table.curves[c];
        out.head.push_back(name + (simulated ? " (simulated)" : "") + ", GB/s");
        for (std::size_t p = 0; p < points.size(); ++p)
            by_size[points[p].bytes].try_emplace(c, placed_point{&points[p], at / "curves" / c / "points" / p});
    }
    for (auto const& [bytes, of] : by_size) {
        std::vector<std::string> cells{figure_text(how).count(bytes, of.begin()->second.at / "bytes").text()};
        for (std::size_t c = 0; c < table.curves.size(); ++c)
            cells.push_back(of.contains(c) ? figure_text(how).figure(of.at(c).point->busbw_gbs, of.at(c).at / "busbw_gbs").text()
                                           : "");
        out.rows.push_back(std::move(cells));
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

std::string metric_cell(shown_run const& run, std::string const& metric, json_place const& at, markup how) {
    return figure_text(how).figure(run.find(metric), at / "metrics" / metric).text();
}

/// Returns a row for each run: its kind, its end, the judged metric and wall_s.
report_table runs_of(study_summary const& study, json_place const& study_at, std::vector<std::string> const& metrics,
                     markup how) {
    report_table out{{"order", "ranks", "repeat"}, {}, {}};
    for (auto const& name : metrics) out.head.push_back(with_unit(study.rows, name));
    out.head.insert(out.head.end(), {"started", "load before", "others' CPUs", "note"});
    for (std::size_t i = 0; i < study.runs.size(); ++i) {
        auto const& run = study.runs[i];
        auto const at = study_at / "runs" / i;
        auto const count = [&](int value, char const* name) { return figure_text(how).count(value, at / name).text(); };
        std::vector<std::string> cells{count(run.order, "order"), count(run.ranks, "ranks"),
                                       run.warmup ? "warm-up" : count(run.repetition, "repetition")};
        for (auto const& name : metrics) cells.push_back(metric_cell(run, name, at, how));
        cells.push_back(figure_text(how).name(time_text(run.started, study.created)).text());
        cells.push_back(figure_text(how).figure(run.load_average, at / "load_average", {2, 1}).text());
        cells.push_back(figure_text(how).figure(run.others, at / "others", {2, 1}).text());
        cells.push_back(run.status == run_status::ok ? "" : figure_text(how).name(run.failure).text());
        out.rows.push_back(std::move(cells));
    }
    return out;
}

}  // namespace

std::vector<report_table> runs_tables_of(study_summary const& study, json_place const& study_at, markup how) {
    auto others = study.metrics;
    std::vector<std::string> first{others.front()};
    others.erase(others.begin());
    if (!others.empty()) first.push_back(others.back()), others.pop_back();  // wall_s
    std::vector<report_table> out{runs_of(study, study_at, first, how)};
    for (std::size_t begin = 0; begin < others.size(); begin += metrics_of_a_table) {
        report_table table{{"order", "ranks"}, {}, {}};
        auto const end = std::min(others.size(), begin + metrics_of_a_table);
        for (auto m = begin; m < end; ++m) table.head.push_back(with_unit(study.rows, others[m]));
        table.head.emplace_back();
        for (std::size_t i = 0; i < study.runs.size(); ++i) {
            auto const& run = study.runs[i];
            auto const at = study_at / "runs" / i;
            std::vector<std::string> cells{figure_text(how).count(run.order, at / "order").text(),
                                           figure_text(how).count(run.ranks, at / "ranks").text()};
            for (auto m = begin; m < end; ++m) cells.push_back(metric_cell(run, others[m], at, how));
            cells.emplace_back();
            table.rows.push_back(std::move(cells));
        }
        out.push_back(std::move(table));
    }
    return out;
}

}  // namespace muster
