#include "bench/report/report_page.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <kainjow/mustache.hpp>

#include "base/error.hpp"
#include "bench/report/report_cells.hpp"
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

/// A list of what `make` makes of each.
template <typename All, typename Make>
data list_of(All const& all, Make const& make) {
    list out;
    for (auto const& each : all) out.push_back(make(each));
    return data(out);
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
    return list_of(figures, [](auto const& each) {
        return with({{"url", data_url(each.svg)}, {"file", each.file}, {"caption", each.caption}});
    });
}

data facts_data(std::vector<report_fact> const& facts) {
    return list_of(facts, [](auto const& fact) { return with({{"what", fact.what}, {"value", fact.value}}); });
}

data findings_data(std::vector<scaling_finding> const& findings) {
    return list_of(findings, [](auto const& each) {
        return with({{"why", std::string(to_string(each.why))}, {"text", each.text}, {"advice", each.advice}});
    });
}

data judgements_data(std::vector<judgement> const& judged) {
    return list_of(judged, [](auto const& each) {
        return with({{"text", each.text}, {"verdict", each.came == expectation_outcome::broken ? "broken" : ""}});
    });
}

data checklist_data(std::vector<checked_rule> const& rules) {
    return list_of(rules, [](auto const& each) {
        std::string const answer(to_string(each.answer));
        return with({{"number", std::to_string(each.number)},
                     {"rule", each.rule},
                     {"answer", answer},
                     {"kind", each.answer == rule_answer::not_known ? "unknown" : answer},
                     {"reason", each.reason}});
    });
}

data study_data(report_document const& document, std::size_t index) {
    auto const& all = document.studies;
    auto const& s = all[index];
    bool const several = all.size() > 1;
    data d = with({{"label", s.label},
                   {"subtitle", s.subtitle},
                   {"host", s.host},
                   {"created", s.created},
                   {"busy_text", s.busy_text},
                   {"base", base_text(s)},
                   {"headline", s.headline},
                   {"missing", s.unfinished},
                   {"of", several ? ": " + s.label : ""}});
    d.set("unfinished", !s.unfinished.empty());
    d.set("several", several);
    d.set("busy", s.busy);
    d.set("tiles", list_of(tiles_of(s), [](auto const& tile) {
              return with({{"kind", std::string(tile.kind)}, {"value", tile.value}, {"what", tile.what}});
          }));
    d.set("table", table_data(scaling_table_of(s)));
    auto const others = metrics_table_of(s);
    d.set("has_others", !others.rows.empty());
    d.set("others", table_data(others));
    d.set("runs", list_of(runs_tables_of(s), table_data));
    d.set("notes", list_of(s.notes, [](auto const& note) { return with({{"text", note}}); }));
    d.set("explained", !s.findings.empty());
    d.set("causes", findings_data(s.findings));
    d.set("was_judged", !s.judgements.empty());
    d.set("judgements", judgements_data(s.judgements));
    d.set("context", facts_data(s.context));
    // Several studies mostly have the same definitions.
    auto const same = [&](study_summary const& other) { return other.definitions == s.definitions; };
    d.set("defines", std::ranges::find_if(all, same) == all.begin() + static_cast<std::ptrdiff_t>(index));
    d.set("defines_of", std::ranges::all_of(all, same) || !several ? "" : ": " + s.label);
    d.set("definitions", facts_data(s.definitions));
    d.set("checklist", checklist_data(s.checklist));
    return d;
}

/// One of each file of collectives, whose tables share it.
data busbw_contexts(std::vector<busbw_table> const& tables) {
    list out;
    std::vector<report_fact> shown;
    for (auto const& table : tables) {
        if (table.context == shown) continue;
        shown = table.context;
        data d = with({{"host", table.host}, {"busy_text", table.busy_text}});
        d.set("busy", table.busy);
        d.set("context", facts_data(shown));
        out.push_back(d);
    }
    return data(out);
}

/// The tables, and where each comes from.
data busbw_data(std::vector<busbw_table> const& tables) {
    return list_of(tables, [](auto const& each) {
        data d = with({{"title", busbw_title(each)}, {"host", each.host}, {"created", each.created}, {"file", each.file}});
        auto table = busbw_table_of(each);
        table.head.emplace_back();  // it has no notes
        for (auto& row : table.rows) row.emplace_back();
        d.set("table", table_data(table));
        return d;
    });
}

data published_data() {
    return list_of(published_rows, [](auto const& p) {
        return with({{"gpus", std::to_string(p.gpus)},
                     {"mnist_s", fmt::format("{:.1f}", p.mnist_s)},
                     {"mnist_speedup", fmt::format("{:.2f}", p.mnist_speedup)},
                     {"mnist_ms", std::to_string(p.mnist_step_ms)},
                     {"cifar_s", fmt::format("{:.1f}", p.cifar_s)},
                     {"cifar_speedup", fmt::format("{:.2f}", p.cifar_speedup)},
                     {"cifar_ms", std::to_string(p.cifar_step_ms)}});
    });
}

data differences_data(std::vector<setting_difference> const& differences) {
    return list_of(differences, [](auto const& each) {
        data d = with({{"setting", each.what}});
        d.set("values", list_of(each.values, [](auto const& value) { return with({{"value", value.empty() ? "-" : value}}); }));
        return d;
    });
}

std::string title_of(std::vector<study_summary> const& studies) {
    if (studies.empty()) return "Bus bandwidth of collectives";
    std::string out = "Scaling of ";
    for (std::size_t i = 0; i < studies.size(); ++i)
        out += (i == 0 ? "" : i + 1 == studies.size() ? " and " : ", ") + studies[i].label;
    return out;
}

}  // namespace

std::string report_html(report_document const& document, report_figures const& figures) {
    auto const& all = document.studies;
    data d = with({{"title", title_of(all)}});
    list studies;
    for (std::size_t i = 0; i < all.size(); ++i) studies.push_back(study_data(document, i));
    d.set("studies", data(studies));
    d.set("labels", list_of(all, [](auto const& study) { return with({{"value", study.label}}); }));
    d.set("differ", !document.differences.empty());
    d.set("differences", differences_data(document.differences));
    d.set("several", all.size() > 1);
    if (all.size() > 1) d.set("side_by_side", table_data(side_by_side(document)));
    d.set("has_figures", !figures.drawn.empty());
    d.set("figures", figures_data(figures.drawn));
    d.set("no_figures", !figures.why_none.empty());
    d.set("why_none", figures.why_none);
    d.set("has_busbw", !document.busbw.empty());
    d.set("busbw", busbw_data(document.busbw));
    d.set("busbw_contexts", busbw_contexts(document.busbw));
    d.set("published", std::ranges::any_of(all, &study_summary::published_settings));
    d.set("published_rows", published_data());
    kainjow::mustache::mustache view{std::string(find_text(report_templates(), "report.html.mustache"))};
    expect(view.is_valid(), "the report's template is valid: " + view.error_message());
    return view.render(d);
}

}  // namespace muster
