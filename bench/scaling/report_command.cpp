#include "bench/scaling/report_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "bench/scaling/plot.hpp"
#include "bench/scaling/report_html.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr option_row report_options[]{
    {"results", 0, "FILE", "results.json of muster-bench scale, or its folder", ""},
    {"output", 'o', "DIR", "where report.html and summary.json go; default: the folder of the results", ""},
    {"no-html", 0, "", "no report.html, for which gnuplot is needed", ""},
    {"json", 0, "", "the summary on standard output instead of the table", ""},
    {"expect", 0, "BOUND", "'speedup[4]>=3.5': exit code 1 where it is broken; may be given again", "", true},
    {"baseline", 0, "FILE", "an earlier results.json: exit code 1 where these results are worse", ""},
    {"tolerance", 0, "X%", "worse by no more than this is as good as the baseline", "5%"},
};

nlohmann::json to_json(summary const& s) {
    return {{"median", s.median},     {"low", s.spread.low},  {"high", s.spread.high}, {"confidence", s.spread.confidence},
            {"smallest", s.smallest}, {"largest", s.largest}, {"count", s.count}};
}

// The table for programs; the runs themselves stay in results.json.
nlohmann::json summary_json(study const& results) {
    nlohmann::json out{{"schema", "muster.scaling-summary/2"}, {"name", results.name},
                       {"created", results.created},           {"cores", results.machine.cores},
                       {"judged", results.plan.judged.name},   {"rows", nlohmann::json::array()}};
    for (auto const& r : scaling_rows(results)) {
        nlohmann::json row{{"ranks", r.ranks},        {"nodes", r.nodes},     {"runs", r.runs},
                           {"failed", r.failed},      {"failure", r.failure}, {"metrics", nlohmann::json::object()},
                           {"speedup", nullptr},      {"crowded", r.crowded}, {"oversubscribed", r.oversubscribed},
                           {"simulated", r.simulated}};
        for (auto const& metric : r.metrics) {
            row["metrics"][metric.name] = to_json(metric.value);
            row["metrics"][metric.name]["unit"] = metric.unit;
        }
        if (r.speedup)
            row["speedup"] = {{"value", r.speedup->value},
                              {"low", r.speedup->low},
                              {"high", r.speedup->high},
                              {"within_spread", r.speedup->within_spread},
                              {"efficiency", r.efficiency}};
        out["rows"].push_back(row);
    }
    out["findings"] = nlohmann::json::array();
    for (auto const& each : find_causes(results))
        out["findings"].push_back({{"cause", to_string(each.why)},
                                   {"ranks", each.ranks},
                                   {"figure", each.figure},
                                   {"low", each.low},
                                   {"high", each.high},
                                   {"text", each.text},
                                   {"advice", each.advice}});
    return out;
}

void write_text(fs::path const& path, std::string const& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw_system("write", path.string());
}

}  // namespace

bool print_judgements(study const& results, study_demands const& demands, study const* baseline) {
    auto const rows = scaling_rows(results);
    std::vector<judgement> all;
    for (auto const& wanted : demands.expectations)
        for (auto& each : judge(wanted, rows, results.plan)) all.push_back(std::move(each));
    if (baseline != nullptr)
        for (auto& each : compare_with_baseline(results, *baseline, demands.tolerance)) all.push_back(std::move(each));
    for (auto const& each : all) fmt::print("{}\n", each.text);
    return std::none_of(all.begin(), all.end(), [](auto const& each) { return each.came == verdict::broken; });
}

std::string write_html_report(study const& results, std::string const& folder, environment const& variables) {
    auto const rows = scaling_rows(results);
    report_plots plots;
    if (base_row(rows, results.plan) != nullptr) {
        plots.speedup = draw_svg(speedup_script(rows, results.machine.cores), variables);
        plots.judged = draw_svg(judged_script(rows, results.plan.judged), variables);
    }
    if (results.plan.built_in) {
        plots.time_split = draw_svg(time_split_script(rows), variables);
        plots.published = draw_svg(published_script(), variables);
    }
    auto const path = fs::path(folder) / "report.html";
    write_text(path, report_html(results, plots));
    return path.string();
}

constexpr command_row report_row{
    .name = "report",
    .summary = "table, JSON and HTML page of a scaling study",
    .synopsis = "--results FILE [options]",
    .examples = "  muster-bench report --results scaling/results.json -o scaling\n",
    .options = report_options,
};

int report_command(given_options const& given, environment const& variables) {
    fs::path file = given.needed("results");
    std::error_code ignored;
    auto const demands = read_study_demands(given);
    if (fs::is_directory(file, ignored)) file /= "results.json";
    auto const results = read_study_file(file.string());
    std::optional<study> baseline;
    if (!demands.baseline.empty()) baseline = read_study_file(demands.baseline);
    bool good = true;
    if (given.has("json")) {
        fmt::print("{}\n", summary_json(results).dump(1));
    } else {
        fmt::print("{}{}", scaling_text(results), findings_text(find_causes(results)));
        good = print_judgements(results, demands, baseline ? &*baseline : nullptr);
    }
    std::fflush(stdout);

    fs::path folder = given.text("output");
    if (folder.empty()) folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    fs::create_directories(folder, ignored);
    if (!fs::is_directory(folder, ignored))
        throw error(errc::io,
                    fmt::format("cannot write the report into '{}': it is no folder and cannot be made; give another with -o",
                                folder.string()));
    write_json_file((folder / "summary.json").string(), summary_json(results));
    if (given.has("no-html")) return good ? 0 : 1;
    fmt::print(stderr, "wrote {} and {}\n", write_html_report(results, folder.string(), variables),
               (folder / "summary.json").string());
    return good ? 0 : 1;
}

}  // namespace muster
