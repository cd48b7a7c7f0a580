#include "bench/report/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/report/report_cells.hpp"
#include "bench/report/report_json.hpp"

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

std::string line(std::string_view text) {
    return one_line(text, false);
}

std::string facts(std::vector<report_fact> const& all) {
    std::string out;
    for (auto const& [what, value] : all) out += fmt::format("- **{}**: {}\n", line(what), line(value));
    return out + "\n";
}

std::string busy_markdown(std::string const& text) {
    return fmt::format("**A busy machine: these figures mean little.** {}.\n\n", line(text));
}

std::string markdown_of(study_summary const& s, bool several) {
    auto out = fmt::format("## {}\n\n{}; {}; {}\n\n", several ? line(s.label) : "Scaling", line(s.subtitle), line(s.host),
                           line(s.created));
    if (s.busy) out += busy_markdown(s.busy_text);
    for (auto const& note : s.notes) out += fmt::format("Note: {}\n\n", line(note));
    if (!s.unfinished.empty()) out += fmt::format("**Unfinished**: {}.\n\n", s.unfinished);
    out += fmt::format("{}.\n\n", line(s.headline));
    for (auto const& tile : tiles_of(s)) out += fmt::format("- **{}** {}\n", tile.value, tile.what);
    out += "\n" + markdown_table(scaling_table_of(s));
    if (auto const base = base_text(s); !base.empty()) out += base + "\n\n";
    if (auto const others = metrics_table_of(s); !others.rows.empty()) out += markdown_table(others);
    for (auto const& each : s.judgements) out += fmt::format("- {}\n", line(each.text));
    if (!s.judgements.empty()) out += "\n";
    if (!s.findings.empty()) out += "### What limits it\n\n";
    for (auto const& each : s.findings)
        out += fmt::format("- **{}**: {}. {}.\n", to_string(each.why), line(each.text), line(each.advice));
    if (!s.findings.empty()) out += "\n";
    out += "### Every run\n\n";
    for (auto const& table : runs_tables_of(s)) out += markdown_table(table);
    out += "### Context\n\n" + facts(s.context) + "### What the numbers mean\n\n" + facts(s.definitions);
    report_table rules{{"", "rule", "kept", "why"}, {}, {}};
    for (auto const& each : s.checklist)
        rules.rows.push_back({std::to_string(each.number), each.rule, std::string(to_string(each.answer)), line(each.reason)});
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

/// Returns the number as the JSON has it.
std::string csv_number(report_json const& value) {
    return value.is_number() ? value.dump() : std::string();
}

std::string scaling_csv(std::vector<study_summary> const& studies) {
    std::vector<std::string> metrics;
    for (auto const& s : studies)
        for (auto const& name : s.metrics)
            if (std::ranges::find(metrics, name) == metrics.end()) metrics.push_back(name);
    std::string out =
        "study,ranks,nodes,runs,failed,oversubscribed,simulated,crowded,speedup,speedup_low,speedup_high,efficiency";
    for (auto const& name : metrics)
        for (auto const* part : {"", "_low", "_high", "_count"}) out += "," + csv_text(name + part);
    out += "\n";
    for (auto const& s : studies)
        for (auto const& row : s.rows) {
            out += fmt::format("{},{},{},{},{},{:d},{:d},{:d}", csv_text(s.label), row.ranks, row.nodes, row.runs, row.failed,
                               row.oversubscribed, row.simulated, row.crowded);
            if (auto const& ratio = row.speedup)
                for (double const value : {ratio->value, ratio->low, ratio->high, row.efficiency}) out += "," + csv_number(value);
            else
                out += ",,,,";
            for (auto const& name : metrics) {
                if (auto const* metric = row.find(name)) {
                    auto const& value = metric->value;
                    for (double const each : {value.median, value.spread.low, value.spread.high}) out += "," + csv_number(each);
                    out += fmt::format(",{}", value.count);
                } else {
                    out += ",,,,";
                }
            }
            out += "\n";
        }
    return out;
}

std::string busbw_csv(std::vector<busbw_table> const& tables) {
    std::string out = "collective,type,redop,ranks,by,simulated,bytes,us,busbw_gbs,low,high,samples\n";
    for (auto const& table : tables)
        for (auto const& curve : table.curves)
            for (auto const& point : curve.points) {
                out += fmt::format("{},{},{},{},{},{:d}", csv_text(table.collective), csv_text(table.type), csv_text(table.redop),
                                   table.ranks, csv_text(curve.name), curve.simulated);
                for (double const value : {point.bytes, point.us, point.busbw_gbs, point.low, point.high})
                    out += "," + csv_number(value);
                out += fmt::format(",{}\n", point.samples);
            }
    return out;
}

}  // namespace

std::string report_markdown(report_document const& document) {
    auto const& studies = document.studies;
    std::string out = "# Scaling report\n\n";
    if (studies.size() > 1) out += "## Side by side\n\n" + markdown_table(side_by_side(document), 0);
    for (auto const& study : studies) out += markdown_of(study, studies.size() > 1);
    if (!document.differences.empty()) {
        report_table differ{{"setting"}, {}, {}};
        for (auto const& s : studies) differ.head.push_back(line(s.label));
        for (auto const& each : document.differences) {
            differ.rows.push_back({line(each.what)});
            for (auto const& value : each.values) differ.rows.back().push_back(value.empty() ? "-" : value);
        }
        out += "## What differs\n\n" + markdown_table(differ, differ.head.size());
    }
    std::vector<report_fact> shown;  // a file's tables share one context
    for (auto const& table : document.busbw) {
        out += fmt::format("## Bus bandwidth: {}\n\n{}; {}; {}\n\n", line(busbw_title(table)), line(table.host),
                           line(table.created), line(table.file));
        if (table.busy) out += busy_markdown(table.busy_text);
        out += markdown_table(busbw_table_of(table), 0);
        if (table.context != shown) out += "### Context\n\n" + facts(table.context);
        shown = table.context;
    }
    return out;
}

std::string report_csv(report_document const& document) {
    return document.studies.empty() ? busbw_csv(document.busbw) : scaling_csv(document.studies);
}

}  // namespace muster
