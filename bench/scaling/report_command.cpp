#include "bench/scaling/report_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/scaling/plot.hpp"
#include "bench/scaling/report_html.hpp"
#include "bench/scaling/scaling_table.hpp"
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
};

nlohmann::json to_json(summary const& s) {
    return {{"median", s.median},     {"low", s.spread.low},  {"high", s.spread.high}, {"confidence", s.spread.confidence},
            {"smallest", s.smallest}, {"largest", s.largest}, {"count", s.count}};
}

// The table for programs; the runs themselves stay in results.json.
nlohmann::json summary_json(study const& results) {
    nlohmann::json out{{"schema", "muster.scaling-summary/1"},
                       {"created", results.created},
                       {"cores", results.machine.cores},
                       {"rows", nlohmann::json::array()}};
    for (auto const& r : scaling_rows(results))
        out["rows"].push_back({{"ranks", r.ranks},
                               {"train_s", to_json(r.train_s)},
                               {"images_per_s", to_json(r.images_per_s)},
                               {"speedup", r.speedup},
                               {"speedup_low", r.speedup_low},
                               {"speedup_high", r.speedup_high},
                               {"efficiency", r.efficiency},
                               {"accuracy", to_json(r.accuracy)},
                               {"startup_s", r.startup_s},
                               {"first_step_s", r.first_step_s},
                               {"compute_s", r.compute_s},
                               {"allreduce_wait_s", r.allreduce_wait_s},
                               {"loader_wait_s", r.loader_wait_s},
                               {"test_s", r.test_s},
                               {"wall_s", r.wall_s},
                               {"oversubscribed", r.oversubscribed},
                               {"simulated", r.simulated}});
    return out;
}

void write_text(fs::path const& path, std::string const& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw_system("write", path.string());
}

}  // namespace

std::string write_html_report(study const& results, std::string const& folder, environment const& variables) {
    auto const rows = scaling_rows(results);
    report_plots const plots{draw_svg(speedup_script(rows, results.machine.cores), variables),
                             draw_svg(throughput_script(rows), variables), draw_svg(time_split_script(rows), variables),
                             draw_svg(published_script(), variables)};
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
    if (fs::is_directory(file, ignored)) file /= "results.json";
    auto const results =
        read_study(read_json_file(file.string(), "give the results.json that muster-bench scale wrote"), file.string());
    if (given.has("json"))
        fmt::print("{}\n", summary_json(results).dump(1));
    else
        fmt::print("{}", scaling_text(results));
    std::fflush(stdout);

    fs::path folder = given.text("output");
    if (folder.empty()) folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    fs::create_directories(folder, ignored);
    if (!fs::is_directory(folder, ignored))
        throw error(errc::io,
                    fmt::format("cannot write the report into '{}': it is no folder and cannot be made; give another with -o",
                                folder.string()));
    write_json_file((folder / "summary.json").string(), summary_json(results));
    if (given.has("no-html")) return 0;
    fmt::print(stderr, "wrote {} and {}\n", write_html_report(results, folder.string(), variables),
               (folder / "summary.json").string());
    return 0;
}

}  // namespace muster
