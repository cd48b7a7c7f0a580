#include "bench/report/report_page.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <kainjow/mustache.hpp>

#include "base/error.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

using kainjow::mustache::data;
using list = kainjow::mustache::list;

data with(std::initializer_list<std::pair<std::string, std::string>> members) {
    data d;
    for (auto const& [name, value] : members) d.set(name, value);
    return d;
}

/// Cells with their column's key, by which a phone lays them out; the last column is the note.
data table_data(report_table const& table) {
    list head, rows;
    auto const key = [&](std::size_t i) { return i < table.keys.size() ? table.keys[i] : std::string(); };
    for (std::size_t i = 0; i + 1 < table.head.size(); ++i) head.push_back(with({{"value", table.head[i]}, {"key", key(i)}}));
    for (auto const& row : table.rows) {
        list cells;
        for (std::size_t i = 0; i + 1 < row.size(); ++i) cells.push_back(with({{"value", row[i]}, {"key", key(i)}}));
        data d;
        d.set("cells", data(cells));
        d.set("note", row.back());
        d.set("noted", !row.back().empty());
        rows.push_back(d);
    }
    data out;
    out.set("has_notes", std::ranges::any_of(table.rows, [](auto const& row) { return !row.back().empty(); }));
    out.set("head", data(head));
    out.set("rows", data(rows));
    return out;
}

data figures_data(std::vector<report_figure> const& figures) {
    list out;
    for (auto const& each : figures)
        out.push_back(with({{"url", data_url(each.svg)}, {"file", each.file}, {"caption", each.caption}}));
    return data(out);
}

data facts_data(report_json const& facts) {
    list out;
    for (auto const& each : facts)
        out.push_back(with({{"what", each.at("what").get<std::string>()}, {"value", each.at("value").get<std::string>()}}));
    return data(out);
}

data findings_data(report_json const& document, json_place const& study) {
    list out;
    auto const& findings = document.at(study).at("findings");
    for (std::size_t i = 0; i < findings.size(); ++i) {
        auto const at = study / "findings" / i;
        figure_text text(document, markup::html), advice(document, markup::html);
        out.push_back(with({{"why", findings[i].at("cause").get<std::string>()},
                            {"text", text.sentence(at, "text").text()},
                            {"advice", advice.sentence(at, "advice").text()}}));
    }
    return data(out);
}

data judgements_data(report_json const& document, json_place const& study) {
    list out;
    auto const& judged = document.at(study).at("judgements");
    for (std::size_t i = 0; i < judged.size(); ++i)
        out.push_back(with({{"text", figure_text(document, markup::html).sentence(study / "judgements" / i, "text").text()},
                            {"verdict", judged[i].at("verdict") == "broken" ? "broken" : ""}}));
    return data(out);
}

data checklist_data(report_json const& rules) {
    list out;
    for (auto const& each : rules) {
        auto const answer = each.at("answer").get<std::string>();
        out.push_back(with({{"number", std::to_string(each.at("number").get<int>())},
                            {"rule", each.at("rule").get<std::string>()},
                            {"answer", answer},
                            {"kind", answer == "not known" ? "unknown" : answer},
                            {"reason", each.at("reason").get<std::string>()}}));
    }
    return data(out);
}

data study_data(report_json const& document, std::size_t index, bool several) {
    json_place const at = json_place("/studies") / index;
    auto const& s = document.at(at);
    auto const text = [&](char const* name) { return s.at(name).get<std::string>(); };
    data d = with({{"label", text("label")},
                   {"subtitle", text("subtitle")},
                   {"host", text("host")},
                   {"created", text("created")},
                   {"busy_text", text("busy_text")},
                   {"base", base_text(document, at, markup::html)},
                   {"of", several ? ": " + text("label") : ""}});
    d.set("headline", figure_text(document, markup::html).sentence(at / "headline", "text").text());
    auto const missing = figure_text(document, markup::html).sentence(at / "unfinished", "text").text();
    d.set("unfinished", !missing.empty());
    d.set("missing", missing);
    d.set("several", several);
    d.set("busy", s.at("busy").get<bool>());
    list tiles;
    for (auto const& tile : tiles_of(document, at, markup::html))
        tiles.push_back(with({{"kind", tile.kind}, {"value", tile.value}, {"what", tile.what}}));
    d.set("tiles", data(tiles));
    d.set("table", table_data(scaling_table_of(document, at, markup::html)));
    auto const others = metrics_table_of(document, at, markup::html);
    d.set("has_others", !others.rows.empty());
    d.set("others", table_data(others));
    list runs;
    for (auto const& table : runs_tables_of(document, at, markup::html)) runs.push_back(table_data(table));
    d.set("runs", data(runs));
    list notes;
    for (auto const& note : s.at("notes")) notes.push_back(with({{"text", note.get<std::string>()}}));
    d.set("notes", data(notes));
    d.set("explained", !s.at("findings").empty());
    d.set("causes", findings_data(document, at));
    d.set("was_judged", !s.at("judgements").empty());
    d.set("judgements", judgements_data(document, at));
    d.set("context", facts_data(s.at("context")));
    // Those of several studies are mostly the same.
    auto const& all = document.at("studies");
    auto const same = [&](report_json const& other) { return other.at("definitions") == s.at("definitions"); };
    d.set("defines", std::find_if(all.begin(), all.end(), same) == all.begin() + static_cast<std::ptrdiff_t>(index));
    d.set("defines_of", std::all_of(all.begin(), all.end(), same) || !several ? "" : ": " + text("label"));
    d.set("definitions", facts_data(s.at("definitions")));
    d.set("checklist", checklist_data(s.at("checklist")));
    return d;
}

/// One of each file of collectives, whose tables share it.
data busbw_contexts(report_json const& tables) {
    list out;
    report_json shown;
    for (auto const& table : tables) {
        if (table.at("context") == shown) continue;
        shown = table.at("context");
        data d = with({{"host", table.at("host").get<std::string>()}, {"busy_text", table.at("busy_text").get<std::string>()}});
        d.set("busy", table.at("busy").get<bool>());
        d.set("context", facts_data(shown));
        out.push_back(d);
    }
    return data(out);
}

/// The tables, and where each comes from.
data busbw_data(report_json const& document) {
    list out;
    auto const& tables = document.at("busbw");
    for (std::size_t i = 0; i < tables.size(); ++i) {
        auto const text = [&](char const* name) { return tables[i].at(name).get<std::string>(); };
        auto const ranks = tables[i].at("ranks").get<int>();
        data d =
            with({{"title", fmt::format("{} {} on {} rank{}", text("collective"), text("type"), ranks, ranks == 1 ? "" : "s")},
                  {"host", text("host")},
                  {"created", text("created")},
                  {"file", text("file")}});
        auto table = busbw_table_of(document, json_place("/busbw") / i, markup::html);
        table.head.emplace_back();
        for (auto& row : table.rows) row.emplace_back();
        d.set("table", table_data(table));
        out.push_back(d);
    }
    return data(out);
}

data published_data() {
    list out;
    for (auto const& p : published_rows)
        out.push_back(with({{"gpus", std::to_string(p.gpus)},
                            {"mnist_s", fmt::format("{:.1f}", p.mnist_s)},
                            {"mnist_speedup", fmt::format("{:.2f}", p.mnist_speedup)},
                            {"mnist_ms", std::to_string(p.mnist_step_ms)},
                            {"cifar_s", fmt::format("{:.1f}", p.cifar_s)},
                            {"cifar_speedup", fmt::format("{:.2f}", p.cifar_speedup)},
                            {"cifar_ms", std::to_string(p.cifar_step_ms)}}));
    return data(out);
}

data differences_data(report_json const& differences) {
    list out;
    for (auto const& each : differences) {
        list values;
        for (auto const& value : each.at("values"))
            values.push_back(with({{"value", value.get<std::string>().empty() ? "-" : value.get<std::string>()}}));
        data d = with({{"setting", each.at("what").get<std::string>()}});
        d.set("values", data(values));
        out.push_back(d);
    }
    return data(out);
}

std::string title_of(report_json const& document) {
    auto const& studies = document.at("studies");
    if (studies.size() == 1) return "Scaling of " + studies[0].at("label").get<std::string>();
    if (studies.empty()) return "Bus bandwidth of collectives";
    std::string out = "Scaling of ";
    for (std::size_t i = 0; i < studies.size(); ++i)
        out += (i == 0 ? "" : i + 1 == studies.size() ? " and " : ", ") + studies[i].at("label").get<std::string>();
    return out;
}

}  // namespace

std::string report_html(report_json const& document, report_figures const& figures) {
    auto const& all = document.at("studies");
    data d = with({{"title", title_of(document)}});
    list studies, labels;
    bool published = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
        studies.push_back(study_data(document, i, all.size() > 1));
        labels.push_back(with({{"value", all[i].at("label").get<std::string>()}}));
        published |= all[i].at("published_settings").get<bool>();
    }
    d.set("studies", data(studies));
    d.set("labels", data(labels));
    d.set("differ", !document.at("differences").empty());
    d.set("differences", differences_data(document.at("differences")));
    d.set("several", all.size() > 1);
    if (all.size() > 1) d.set("side_by_side", table_data(side_by_side(document, markup::html)));
    d.set("has_figures", !figures.drawn.empty());
    d.set("figures", figures_data(figures.drawn));
    d.set("no_figures", !figures.why_none.empty());
    d.set("why_none", figures.why_none);
    d.set("has_busbw", !document.at("busbw").empty());
    d.set("busbw", busbw_data(document));
    d.set("busbw_contexts", busbw_contexts(document.at("busbw")));
    d.set("published", published);
    d.set("published_rows", published_data());
    kainjow::mustache::mustache view{std::string(find_text(report_templates(), "report.html.mustache"))};
    expect(view.is_valid(), "the report's template is valid: " + view.error_message());
    return view.render(d);
}

}  // namespace muster
