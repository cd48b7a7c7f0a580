#include "bench/report/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster {

namespace {

constexpr std::size_t enough_for_interval = 6;

std::string with_unit(report_json const& study, std::string const& metric) {
    for (auto const& row : study.at("rows"))
        if (row.at("metrics").contains(metric)) {
            auto const unit = row.at("metrics").at(metric).at("unit").get<std::string>();
            bool const said = unit.empty() || metric.ends_with("_" + unit) || unit.find("/s") != unit.npos;
            return said ? metric : fmt::format("{} ({})", metric, unit);
        }
    return metric;
}

/// Whether a number of ranks has several runs.
bool has_spreads(report_json const& study) {
    auto const judged = study.at("judged").get<std::string>();
    return std::ranges::any_of(study.at("rows"), [&](auto const& row) {
        auto const& metrics = row.at("metrics");
        return metrics.contains(judged) && metrics.at(judged).at("count").template get<std::size_t>() > 1;
    });
}

/// "4.00 to 5.00 (97% CI)", "(range)", "one run", of a summary at that place.
void add_spread(figure_text& to, report_json const& document, json_place const& at) {
    auto const runs = document.at(at).at("count").get<std::size_t>();
    if (runs < 2)
        to.words("one run");
    else if (runs < enough_for_interval)
        to.figure(at / "smallest").words(" to ").figure(at / "largest").words(" (range)");
    else
        to.figure(at / "low").words(" to ").figure(at / "high").words(" (").percent(at / "confidence").words(" CI)");
}

std::string with_blank(std::string const& unit) {
    return unit.empty() ? unit : " " + unit;
}

void add_ranks(figure_text& to, report_json const& document, json_place const& at) {
    to.count(at).words(document.at(at).get<int>() == 1 ? " rank" : " ranks");
}

/// A tile that tells of something bad: its value and what it means.
void bad_tile(report_json const& document, json_place const& at, figure_text& value, figure_text& what) {
    auto const& tile = document.at(at);
    auto const kind = tile.at("kind").get<std::string>();
    if (kind == "unfinished") {
        value.count(at / "made").words(" of ").count(at / "planned");
        what.words("runs were made: the study is unfinished");
    } else if (kind == "failed") {
        value.count(at / "failed");
        what.words("of ").count(at / "made").words(" runs failed");
    } else if (kind == "broken") {
        value.count(at / "broken");
        what.words("of ").count(at / "judged").words(" bounds broken, see below");
    } else if (kind == "busy") {
        value.words("busy");
        what.words("other programs worked: these figures mean little");
    } else if (kind == "simulated") {
        value.words("simulated");
        what.words("rows that are marked so were not measured");
    } else if (tile.contains("share")) {
        value.percent(at / "share", tile.at("share").get<double>() < 0.1 ? 1 : 0);
        what.words(tile.at("cause").get<std::string>() + " at ");
        add_ranks(what, document, at / "ranks");
        what.words(": see what limits it");
    } else {
        value.words(tile.at("cause").get<std::string>());
        what.words("at ");
        add_ranks(what, document, at / "ranks");
        what.words(": see what limits it");
    }
}

/// The cells of a row's speed-up and efficiency.
void add_ratios(report_json const& document, json_place const& row, markup how, std::vector<std::string>& cells) {
    auto const& speedup = document.at(row).at("speedup");
    bool const compared = !speedup.is_null(), hidden = compared && speedup.at("within_spread").get<bool>();
    figure_text ratio(document, how), part(document, how);
    hidden ? ratio.words("within the spread") : compared ? ratio.figure(row / "speedup" / "value", {2, 1}) : ratio.words("-");
    hidden || !compared ? part.words("-") : part.percent(row / "speedup" / "efficiency");
    cells.insert(cells.end(), {ratio.text(), part.text()});
}

report_tile tile_of(report_json const& document, json_place const& at, markup how) {
    auto const& tile = document.at(at);
    auto const kind = tile.at("kind").get<std::string>();
    figure_text value(document, how), what(document, how);
    if (kind == "best") {
        bool const compared = tile.contains("speedup") && !tile.at("base").get<bool>();
        if (compared)
            value.figure(at / "speedup" / "value", {2, 1}).words("x");
        else
            value.figure(at / "value" / "median").name(with_blank(tile.at("value").at("unit").get<std::string>()));
        what.words("on ");
        add_ranks(what, document, at / "ranks");
        if (tile.at("nodes").get<int>() > 1) what.words(", ").count(at / "nodes").words(" nodes");
        what.words(": ").name(tile.at("metric").get<std::string>()).words(" ").figure(at / "value" / "median");
        what.name(with_blank(tile.at("value").at("unit").get<std::string>())).words(", ");
        add_spread(what, document, at / "value");
        if (!compared && tile.at("others").get<int>() > 0) what.words("; more ranks are not measurably faster");
        if (compared && tile.at("speedup").at("has_spread").get<bool>())
            what.words("; speed-up ")
                .figure(at / "speedup" / "low", {2, 1})
                .words(" to ")
                .figure(at / "speedup" / "high", {2, 1});
        if (compared) what.words(", efficiency ").percent(at / "speedup" / "efficiency");
    } else {
        bad_tile(document, at, value, what);
    }
    return {kind, value.text(), what.text()};
}

}  // namespace

std::vector<report_tile> tiles_of(report_json const& document, json_place const& study, markup how) {
    std::vector<report_tile> out;
    for (std::size_t i = 0; i < document.at(study).at("tiles").size(); ++i)
        out.push_back(tile_of(document, study / "tiles" / i, how));
    return out;
}

report_table scaling_table_of(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    auto const metrics = s.at("metrics").get<std::vector<std::string>>();
    std::vector<std::string> counts{"ranks"};
    if (std::ranges::any_of(s.at("rows"), [](auto const& row) { return row.at("nodes").template get<int>() > 1; }))
        counts.emplace_back("nodes");
    counts.emplace_back("runs");
    report_table out{counts, {}, counts};
    bool const spreads = has_spreads(s);
    for (auto const& [title, key] : {std::pair(with_unit(s, metrics.front()), "judged"),
                                     {"spread", "spread"},
                                     {"speed-up", "speedup"},
                                     {"efficiency", "efficiency"},
                                     {"note", "note"}}) {
        if (title == "spread" && key == title && !spreads) continue;
        out.head.push_back(title);
        out.keys.emplace_back(key);
    }
    for (std::size_t r = 0; r < s.at("rows").size(); ++r) {
        auto const& row = s.at("rows")[r];
        auto const at = study / "rows" / r;
        std::vector<std::string> cells;
        auto const add = [&](auto const& write) {
            figure_text cell(document, how);
            write(cell);
            cells.push_back(cell.text());
        };
        for (auto const& name : counts) add([&](figure_text& t) { t.count(at / name); });
        bool const judged = row.at("metrics").contains(metrics.front());
        auto const judged_at = at / "metrics" / metrics.front();
        add([&](figure_text& t) { t.figure(judged_at / "median"); });
        if (spreads) add([&](figure_text& t) { judged ? add_spread(t, document, judged_at) : void(t.words("-")); });
        add_ratios(document, at, how, cells);
        add([&](figure_text& t) { t.sentence(at, "note"); });
        out.rows.push_back(std::move(cells));
    }
    return out;
}

report_table metrics_table_of(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    auto const metrics = s.at("metrics").get<std::vector<std::string>>();
    report_table out{{"median"}, {}, {}};
    for (auto const& row : s.at("rows")) {
        auto const ranks = row.at("ranks").get<int>();
        out.head.push_back(fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"));
    }
    out.head.emplace_back();
    for (std::size_t i = 1; i < metrics.size(); ++i) {
        out.rows.push_back({figure_text(document, how).name(with_unit(s, metrics[i])).text()});
        for (std::size_t r = 0; r < s.at("rows").size(); ++r)
            out.rows.back().push_back(
                figure_text(document, how).figure(study / "rows" / r / "metrics" / metrics[i] / "median").text());
        out.rows.back().emplace_back();
    }
    return out;
}

std::string base_text(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    if (s.at("base_ranks").is_null()) return {};
    auto const metric = s.at("judged").get<std::string>();
    for (std::size_t r = 0; r < s.at("rows").size(); ++r) {
        if (s.at("rows")[r].at("ranks") != s.at("base_ranks")) continue;
        figure_text out(document, how);
        out.words(has_spreads(s) ? "Medians. " : "One run a row: there is no spread. ").words("The base of every speed-up is ");
        add_ranks(out, document, study / "base_ranks");
        out.words(" at ").name(metric).words(" ").figure(study / "rows" / r / "metrics" / metric / "median").words(".");
        return out.text();
    }
    return {};
}

report_table side_by_side(report_json const& document, markup how) {
    auto const& studies = document.at("studies");
    report_table out{{"ranks"}, {}, {}};
    std::map<int, std::vector<json_place>> places;  // ranks: of each study's row; no place where it has none
    for (std::size_t i = 0; i < studies.size(); ++i) {
        out.head.push_back(fmt::format("{}: {}, speed-up, efficiency", studies[i].at("label").get<std::string>(),
                                       with_unit(studies[i], studies[i].at("judged").get<std::string>())));
        for (std::size_t r = 0; r < studies[i].at("rows").size(); ++r) {
            auto& of = places[studies[i].at("rows")[r].at("ranks").get<int>()];
            of.resize(studies.size());
            of[i] = json_place("/studies") / i / "rows" / r;
        }
    }
    out.head.emplace_back();
    for (auto const& [ranks, of] : places) {
        auto const first = std::ranges::find_if(of, [](auto const& at) { return !at.empty(); });
        std::vector<std::string> cells{figure_text(document, how).count(*first / "ranks").text()};
        for (std::size_t i = 0; i < of.size(); ++i) {
            auto const metric = studies[i].at("judged").get<std::string>();
            figure_text median(document, how);
            if (of[i].empty() || !document.at(of[i]).at("metrics").contains(metric)) {
                cells.push_back(median.words("-").text());
                continue;
            }
            median.figure(of[i] / "metrics" / metric / "median");
            cells.push_back(median.text());
            std::vector<std::string> ratios;
            add_ratios(document, of[i], how, ratios);
            for (auto const& ratio : ratios)
                if (ratio != "-") cells.back() += ", " + ratio;
        }
        cells.emplace_back();
        out.rows.push_back(std::move(cells));
    }
    return out;
}

report_table busbw_table_of(report_json const& document, json_place const& table, markup how) {
    auto const& curves = document.at(table).at("curves");
    report_table out{{"bytes"}, {}, {}};
    std::map<double, std::map<std::size_t, json_place>> places;  // bytes: of each curve's point
    for (std::size_t c = 0; c < curves.size(); ++c) {
        out.head.push_back(curves[c].at("name").get<std::string>() +
                           (curves[c].at("simulated").get<bool>() ? " (simulated)" : "") + ", GB/s");
        for (std::size_t p = 0; p < curves[c].at("points").size(); ++p)
            places[curves[c].at("points")[p].at("bytes").get<double>()].try_emplace(c, table / "curves" / c / "points" / p);
    }
    for (auto const& [bytes, of] : places) {
        std::vector<std::string> cells{figure_text(document, how).count(of.begin()->second / "bytes").text()};
        for (std::size_t c = 0; c < curves.size(); ++c)
            cells.push_back(of.contains(c) ? figure_text(document, how).figure(of.at(c) / "busbw_gbs").text() : "");
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

/// What each run was and how it went, with the judged metric and wall_s.
report_table runs_of(report_json const& document, json_place const& study, std::vector<std::string> const& metrics, markup how) {
    auto const& s = document.at(study);
    report_table out{{"order", "ranks", "repeat"}, {}, {}};
    for (auto const& name : metrics) out.head.push_back(with_unit(s, name));
    out.head.insert(out.head.end(), {"started", "load before", "others' CPUs", "note"});
    for (std::size_t i = 0; i < s.at("runs").size(); ++i) {
        auto const& run = s.at("runs")[i];
        auto const at = study / "runs" / i;
        std::vector<std::string> cells;
        auto const add = [&](auto const& write) {
            figure_text cell(document, how);
            write(cell);
            cells.push_back(cell.text());
        };
        add([&](figure_text& t) { t.count(at / "order"); });
        add([&](figure_text& t) { t.count(at / "ranks"); });
        add([&](figure_text& t) { run.at("warmup").get<bool>() ? t.words("warm-up") : t.count(at / "repetition"); });
        for (auto const& name : metrics) add([&](figure_text& t) { t.figure(at / "metrics" / name); });
        auto const text = [&](char const* name) { return run.at(name).get<std::string>(); };
        add([&](figure_text& t) { t.name(time_text(text("started"), s.at("created").get<std::string>())); });
        add([&](figure_text& t) { t.figure(at / "load_average", {2, 1}); });
        add([&](figure_text& t) { t.figure(at / "others", {2, 1}); });
        add([&](figure_text& t) {
            if (run.at("status") != "ok") t.name(text("failure"));
        });
        out.rows.push_back(std::move(cells));
    }
    return out;
}

}  // namespace

std::vector<report_table> runs_tables_of(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    auto others = s.at("metrics").get<std::vector<std::string>>();
    std::vector<std::string> first{others.front()};
    others.erase(others.begin());
    if (!others.empty()) first.push_back(others.back()), others.pop_back();  // wall_s
    std::vector<report_table> out{runs_of(document, study, first, how)};
    for (std::size_t begin = 0; begin < others.size(); begin += metrics_of_a_table) {
        report_table table{{"order", "ranks"}, {}, {}};
        auto const end = std::min(others.size(), begin + metrics_of_a_table);
        for (auto m = begin; m < end; ++m) table.head.push_back(with_unit(s, others[m]));
        table.head.emplace_back();
        for (std::size_t i = 0; i < s.at("runs").size(); ++i) {
            auto const at = study / "runs" / i;
            std::vector<std::string> cells{figure_text(document, how).count(at / "order").text(),
                                           figure_text(document, how).count(at / "ranks").text()};
            for (auto m = begin; m < end; ++m)
                cells.push_back(figure_text(document, how).figure(at / "metrics" / others[m]).text());
            cells.emplace_back();
            table.rows.push_back(std::move(cells));
        }
        out.push_back(std::move(table));
    }
    return out;
}

}  // namespace muster
