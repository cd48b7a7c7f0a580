#include "bench/report/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

namespace {

constexpr std::size_t enough_for_interval = 6;

std::string with_unit(report_json const& study, std::string const& metric) {
    for (auto const& row : study.at("rows"))
        if (row.at("metrics").contains(metric)) {
            auto const unit = row.at("metrics").at(metric).at("unit").get<std::string>();
            bool const said = unit.empty() || metric.ends_with("_" + unit);
            return said ? metric : fmt::format("{} ({})", metric, unit);
        }
    return metric;
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

void add_ranks(figure_text& to, report_json const& document, json_place const& at) {
    to.count(at).words(document.at(at).get<int>() == 1 ? " rank" : " ranks");
}

/// A tile that tells of something bad: its value and what it means.
void bad_tile(report_json const& document, json_place const& at, figure_text& value, figure_text& what) {
    auto const& tile = document.at(at);
    auto const kind = tile.at("kind").get<std::string>();
    if (kind == "failed") {
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
        what.words(": see why it stops");
    } else {
        value.words(tile.at("cause").get<std::string>());
        what.words("at ");
        add_ranks(what, document, at / "ranks");
        what.words(": see why it stops");
    }
}

report_tile tile_of(report_json const& document, json_place const& study, json_place const& at, markup how) {
    auto const& tile = document.at(at);
    auto const kind = tile.at("kind").get<std::string>();
    figure_text value(document, how), what(document, how);
    if (kind == "speedup") {
        if (tile.at("speedup").at("within_spread").get<bool>()) {
            value.words("none");
            what.words("speed-up beyond the spread, at ");
            add_ranks(what, document, at / "ranks");
        } else {
            value.figure(at / "speedup" / "value", {2, 1}).words("x");
            what.words("speed-up of ");
            add_ranks(what, document, at / "ranks");
            what.words(" (").figure(at / "speedup" / "low", {2, 1}).words(" to ").figure(at / "speedup" / "high", {2, 1});
            what.words("), efficiency ").percent(at / "speedup" / "efficiency");
        }
    } else if (kind == "largest" || kind == "base") {
        value.figure(at / "value" / "median");
        what.name(with_unit(document.at(study), tile.at("metric").get<std::string>())).words(" of ");
        add_ranks(what, document, at / "ranks");
        what.words(kind == "base" ? ", the base (" : " (");
        add_spread(what, document, at / "value");
        what.words(")");
    } else {
        bad_tile(document, at, value, what);
    }
    return {kind, value.text(), what.text()};
}

}  // namespace

std::vector<report_tile> tiles_of(report_json const& document, json_place const& study, markup how) {
    std::vector<report_tile> out;
    for (std::size_t i = 0; i < document.at(study).at("tiles").size(); ++i)
        out.push_back(tile_of(document, study, study / "tiles" / i, how));
    return out;
}

report_table scaling_table_of(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    auto const metrics = s.at("metrics").get<std::vector<std::string>>();
    std::vector<std::string> counts{"ranks"};
    if (std::ranges::any_of(s.at("rows"), [](auto const& row) { return row.at("nodes").template get<int>() > 1; }))
        counts.emplace_back("nodes");
    counts.emplace_back("runs");
    report_table out{counts, {}};
    out.head.insert(out.head.end(), {with_unit(s, metrics.front()), "spread", "speed-up", "efficiency", "note"});
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
        add([&](figure_text& t) { judged ? add_spread(t, document, judged_at) : void(t.words("-")); });
        bool const compared = !row.at("speedup").is_null();
        bool const hidden = compared && row.at("speedup").at("within_spread").get<bool>();
        add([&](figure_text& t) {
            hidden ? t.words("within the spread") : compared ? t.figure(at / "speedup" / "value", {2, 1}) : t.words("-");
        });
        add([&](figure_text& t) { hidden || !compared ? t.words("-") : t.percent(at / "speedup" / "efficiency"); });
        add([&](figure_text& t) { t.sentence(at, "note"); });
        out.rows.push_back(std::move(cells));
    }
    return out;
}

report_table metrics_table_of(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    auto const metrics = s.at("metrics").get<std::vector<std::string>>();
    report_table out{{"median"}, {}};
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
        out.words("Medians. The base of every speed-up is ");
        add_ranks(out, document, study / "base_ranks");
        out.words(" at ").name(metric).words(" ").figure(study / "rows" / r / "metrics" / metric / "median").words(".");
        return out.text();
    }
    return {};
}

report_table runs_table_of(report_json const& document, json_place const& study, markup how) {
    auto const& s = document.at(study);
    auto const metrics = s.at("metrics").get<std::vector<std::string>>();
    report_table out{{"order", "ranks", "repetition", "started"}, {}};
    for (auto const& name : metrics) out.head.push_back(with_unit(s, name));
    out.head.insert(out.head.end(), {"load before", "others' CPUs", "note"});
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
        add([&](figure_text& t) { t.name(run.at("started").get<std::string>()); });
        for (auto const& name : metrics) add([&](figure_text& t) { t.figure(at / "metrics" / name); });
        add([&](figure_text& t) { t.figure(at / "load_average", {2, 1}); });
        add([&](figure_text& t) { t.figure(at / "others", {2, 1}); });
        bool const ok = run.at("status") == "ok";
        auto const text = [&](char const* name) { return run.at(name).get<std::string>(); };
        add([&](figure_text& t) {
            if (!ok) t.name(fmt::format("{}: {}; see {}", text("status"), text("reason"), text("output")));
        });
        out.rows.push_back(std::move(cells));
    }
    return out;
}

}  // namespace muster
