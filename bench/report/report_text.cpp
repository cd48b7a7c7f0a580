#include <fmt/format.h>

#include <algorithm>

#include "bench/report/report_page.hpp"

namespace muster {

namespace {

std::string one_line(std::string_view text, bool in_table) {
    std::string out;
    for (char const c : text) {
        if (in_table && c == '|') out += '\\';
        out += c == '\n' || c == '\r' ? ' ' : c;
    }
    return out;
}

std::string markdown_row(std::vector<std::string> const& cells) {
    std::string out = "|";
    for (auto const& cell : cells) out += " " + one_line(cell, true) + " |";
    return out + "\n";
}

/// `left` columns at the end hold words.
std::string markdown_table(report_table const& table, std::size_t left = 1) {
    auto out = markdown_row(table.head) + "|";
    for (std::size_t i = 0; i < table.head.size(); ++i) out += i + left < table.head.size() ? "--:|" : "---|";
    out += "\n";
    for (auto const& row : table.rows) out += markdown_row(row);
    return out + "\n";
}

std::string told(report_json const& object, char const* name) {
    return one_line(object.at(name).get<std::string>(), false);
}

std::string text_or_dash(report_json const& value) {
    auto const text = value.get<std::string>();
    return text.empty() ? "-" : text;
}

std::string facts(report_json const& all) {
    std::string out;
    for (auto const& each : all) out += fmt::format("- **{}**: {}\n", told(each, "what"), told(each, "value"));
    return out + "\n";
}

std::string busy_markdown(report_json const& of) {
    return fmt::format("**A busy machine: these figures mean little.** {}.\n\n", told(of, "busy_text"));
}

std::string markdown_of(report_json const& document, std::size_t index, bool several) {
    json_place const at = json_place("/studies") / index;
    auto const& s = document.at(at);
    auto out = fmt::format("## {}\n\n{}; {}; {}\n\n", several ? told(s, "label") : "Scaling", told(s, "subtitle"),
                           told(s, "host"), told(s, "created"));
    if (s.at("busy").get<bool>()) out += busy_markdown(s);
    for (auto const& note : s.at("notes")) out += fmt::format("Note: {}\n\n", one_line(note.get<std::string>(), false));
    if (auto const missing = s.at("unfinished").at("text").get<std::string>(); !missing.empty())
        out += fmt::format("**Unfinished**: {}.\n\n", missing);
    out += fmt::format("{}.\n\n", told(s.at("headline"), "text"));
    for (auto const& tile : tiles_of(document, at, markup::plain)) out += fmt::format("- **{}** {}\n", tile.value, tile.what);
    out += "\n" + markdown_table(scaling_table_of(document, at, markup::plain));
    if (auto const base = base_text(document, at, markup::plain); !base.empty()) out += base + "\n\n";
    if (auto const others = metrics_table_of(document, at, markup::plain); !others.rows.empty()) out += markdown_table(others);
    for (auto const& each : s.at("judgements")) out += fmt::format("- {}\n", told(each, "text"));
    if (!s.at("judgements").empty()) out += "\n";
    if (!s.at("findings").empty()) out += "### What limits it\n\n";
    for (auto const& each : s.at("findings"))
        out += fmt::format("- **{}**: {}. {}.\n", told(each, "cause"), told(each, "text"), told(each, "advice"));
    if (!s.at("findings").empty()) out += "\n";
    out += "### Every run\n\n";
    for (auto const& table : runs_tables_of(document, at, markup::plain)) out += markdown_table(table);
    out += "### Context\n\n" + facts(s.at("context")) + "### What the numbers mean\n\n" + facts(s.at("definitions"));
    report_table rules{{"", "rule", "kept", "why"}, {}, {}};
    for (auto const& each : s.at("checklist"))
        rules.rows.push_back(
            {std::to_string(each.at("number").get<int>()), told(each, "rule"), told(each, "answer"), told(each, "reason")});
    out +=
        "### A reviewer's checklist\n\nThe twelve rules of T. Hoefler and R. Belli (SC'15), in our words, for this study, from "
        "what was recorded.\n\n";
    return out + markdown_table(rules, 3);
}

std::string csv_text(std::string const& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (char const c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

std::string csv_number(report_json const& value) {
    return value.is_number() ? value.dump() : std::string();
}

std::string scaling_csv(report_json const& studies) {
    std::vector<std::string> metrics;
    for (auto const& s : studies)
        for (auto const& name : s.at("metrics"))
            if (auto text = name.get<std::string>(); std::ranges::find(metrics, text) == metrics.end())
                metrics.push_back(std::move(text));
    std::string out =
        "study,ranks,nodes,runs,failed,oversubscribed,simulated,crowded,speedup,speedup_low,speedup_high,efficiency";
    for (auto const& name : metrics)
        for (auto const* part : {"", "_low", "_high", "_count"}) out += "," + csv_text(name + part);
    out += "\n";
    for (auto const& s : studies)
        for (auto const& row : s.at("rows")) {
            out += csv_text(s.at("label").get<std::string>());
            for (auto const* name : {"ranks", "nodes", "runs", "failed"}) out += "," + csv_number(row.at(name));
            for (auto const* name : {"oversubscribed", "simulated", "crowded"}) out += row.at(name).get<bool>() ? ",1" : ",0";
            for (auto const* name : {"value", "low", "high", "efficiency"})
                out += "," + (row.at("speedup").is_null() ? std::string() : csv_number(row.at("speedup").at(name)));
            for (auto const& name : metrics)
                for (auto const* part : {"median", "low", "high", "count"})
                    out += "," +
                           (row.at("metrics").contains(name) ? csv_number(row.at("metrics").at(name).at(part)) : std::string());
            out += "\n";
        }
    return out;
}

std::string busbw_csv(report_json const& tables) {
    std::string out = "collective,type,redop,ranks,by,simulated,bytes,us,busbw_gbs,low,high,samples\n";
    for (auto const& table : tables)
        for (auto const& curve : table.at("curves"))
            for (auto const& point : curve.at("points")) {
                for (auto const* name : {"collective", "type", "redop"}) out += csv_text(table.at(name).get<std::string>()) + ",";
                out += csv_number(table.at("ranks")) + "," + csv_text(curve.at("name").get<std::string>());
                out += curve.at("simulated").get<bool>() ? ",1" : ",0";
                for (auto const* name : {"bytes", "us", "busbw_gbs", "low", "high", "samples"})
                    out += "," + csv_number(point.at(name));
                out += "\n";
            }
    return out;
}

}  // namespace

std::string report_markdown(report_json const& document) {
    auto const& studies = document.at("studies");
    std::string out = "# Scaling report\n\n";
    if (studies.size() > 1) out += "## Side by side\n\n" + markdown_table(side_by_side(document, markup::plain), 0);
    for (std::size_t i = 0; i < studies.size(); ++i) out += markdown_of(document, i, studies.size() > 1);
    if (!document.at("differences").empty()) {
        report_table differ{{"setting"}, {}, {}};
        for (auto const& s : studies) differ.head.push_back(told(s, "label"));
        for (auto const& each : document.at("differences")) {
            differ.rows.push_back({told(each, "what")});
            for (auto const& value : each.at("values")) differ.rows.back().push_back(text_or_dash(value));
        }
        out += "## What differs\n\n" + markdown_table(differ, differ.head.size());
    }
    report_json shown;  // a file's tables share one context
    for (std::size_t i = 0; i < document.at("busbw").size(); ++i) {
        auto const& table = document.at("busbw")[i];
        out +=
            fmt::format("## Bus bandwidth: {} {} on {} ranks\n\n{}; {}; {}\n\n", told(table, "collective"), told(table, "type"),
                        table.at("ranks").get<int>(), told(table, "host"), told(table, "created"), told(table, "file"));
        if (table.at("busy").get<bool>()) out += busy_markdown(table);
        out += markdown_table(busbw_table_of(document, json_place("/busbw") / i, markup::plain), 0);
        if (table.at("context") != shown) out += "### Context\n\n" + facts(table.at("context"));
        shown = table.at("context");
    }
    return out;
}

std::string report_csv(report_json const& document) {
    return document.at("studies").empty() ? busbw_csv(document.at("busbw")) : scaling_csv(document.at("studies"));
}

}  // namespace muster
