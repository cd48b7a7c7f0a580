#include "bench/report/report_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "bench/report/report_figures.hpp"
#include "bench/report/report_json.hpp"
#include "bench/report/report_page.hpp"
#include "bench/report/report_text.hpp"
#include "bench/study/failed_runs.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/study/study.hpp"
#include "bench/study/study_demands.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr option_row report_options[]{
    {"output", 'o', "PATH",
     "folder of report.html, summary.json and plots.py [that of the results; of several: the current one]; with --format: a file",
     ""},
    {"format", 0, "NAME", "html, md, csv or json: only this, to -o or, except for html, to standard output", ""},
    {"expect", 0, "BOUND", "'speedup[4]>=3.5': exit code 1 where it is broken; may be given again", "", true},
    {"baseline", 0, "FILE", "an earlier results.json: exit code 1 where these results are worse", ""},
    {"tolerance", 0, "X%", "worse by no more than this is as good as the baseline", "5%"},
};

constexpr std::string_view formats[]{"html", "md", "csv", "json"};

void write_report_file(fs::path const& path, std::string const& text) {
    write_output_file(path.string(), text, "give another place with -o");
}

/// "" where no format is asked for.
std::string format_of(given_options const& given) {
    if (!given.has("format")) return {};
    auto const name = given.text("format");
    if (std::find(std::begin(formats), std::end(formats), name) == std::end(formats))
        throw_error(errc::usage, "--format: '{}' is unknown; give html, md, csv or json", name);
    return name;
}

std::vector<std::string> const& paths_of(given_options const& given) {
    if (given.words().empty())
        throw error(errc::usage,
                    "muster-bench report: no results; give the results.json that muster-bench scale wrote, or its folder");
    return given.words();
}

/// Returns the folder of the results if all are in one, else the current one.
fs::path folder_of(given_options const& given, report_input const& input) {
    if (given.has("output")) return given.text("output");
    fs::path const file = input.studies.size() == 1 ? input.studies.front().file : "";
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

void make_folder(fs::path const& folder) {
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    if (!fs::is_directory(folder, ignored))
        throw_error(errc::io, "cannot write the report into '{}': it is no folder and cannot be made; give another with -o",
                    folder.string());
}

/// Draws the figures of a page that has no folder.
report_figures draw_apart(report_document const& document, environment const& variables) {
    temporary_folder const apart("muster-report", variables);
    auto const summary = fs::path(apart.path()) / "summary.json";
    write_report_file(summary, dump_json(to_json(document)));
    return draw_figures(own_plots_script(), summary, fs::path(apart.path()) / "figures", variables);
}

/// One format alone, into a file or to standard output.
void write_format(std::string const& format, given_options const& given, report_input const& input,
                  report_document const& document, environment const& variables) {
    auto const text = format == "html"  ? report_html(document, draw_apart(document, variables))
                      : format == "md"  ? report_markdown(document)
                      : format == "csv" ? report_csv(document)
                                        : dump_json(to_json(document));
    if (format != "html" && (!given.has("output") || given.text("output") == "-")) {
        fmt::print("{}", text);
        return;
    }
    auto path = folder_of(given, input);
    if (std::error_code ignored; fs::is_directory(path, ignored)) path /= "report." + format;
    write_report_file(path, text);
    fmt::print(stderr, "wrote {}\n", path.string());
}

void print_differences(report_document const& document) {
    if (document.differences.empty()) return;
    std::vector<std::string> head{"what differs"};
    for (auto const& s : document.studies) head.push_back(s.label);
    text_table table(head);
    for (auto const& each : document.differences) {
        std::vector<std::string> row{each.what};
        for (auto const& value : each.values) row.push_back(value.empty() ? "-" : without_controls(value));
        table.add(row);
    }
    fmt::print("{}", table.text());
}

void print_tables(report_input const& input, report_document const& document) {
    for (auto const& [results, file, judged] : input.studies) {
        if (input.studies.size() > 1) fmt::print("{} ({})\n", results.name, file);
        fmt::print("{}{}{}{}", scaling_text(results), findings_text(find_causes(results)),
                   failures_text(results, fs::path(file).parent_path()), judgements_text(judged));
        if (input.studies.size() > 1) fmt::print("\n");
    }
    print_differences(document);
}

}  // namespace

void write_report(report_document const& document, fs::path const& folder, bool page, environment const& variables) {
    auto const write = [&](char const* name, std::string const& text) {
        auto const path = folder / name;
        write_report_file(path, text);
        fmt::print(stderr, "wrote {}\n", path.string());
    };
    write("summary.json", dump_json(to_json(document)));
    if (!page) return;
    auto const into = folder / "figures";
    auto const figures = draw_figures(plots_script_of(folder), folder / "summary.json", into, variables);
    write("report.html", report_html(document, figures));
    if (figures.why_none.empty())
        fmt::print(stderr, "wrote {} figures into {}, as SVG, PDF and PNG\n", figures.drawn.size(), into.string());
    else
        fmt::print(stderr, "no figures: {}\n", figures.why_none);
}

constexpr command_row report_row{
    .name = "report",
    .summary = "table, page, Markdown, CSV and JSON of scaling studies",
    .synopsis = "RESULTS… [options]",
    .examples =
        "  muster-bench report scaling\n"
        "  muster-bench report before/results.json after/results.json collectives.json -o compared\n"
        "  muster-bench report scaling --format md -o report.md\n",
    .options = report_options,
    .description =
        "RESULTS are files or folders of muster-bench scale, side by side in one report, and files that collectives wrote\n"
        "with --json. Beside the page lies plots.py, which draws its figures as SVG, PDF and PNG with Matplotlib: edit it for a\n"
        "paper.",
    .most_words = 64,
};

int report_command(given_options const& given, environment const& variables) {
    auto const format = format_of(given);
    auto const demands = read_study_demands(given);
    auto input = read_report_input(paths_of(given));
    std::optional<study> baseline;
    if (!demands.baseline.empty()) baseline = read_study_file(demands.baseline);
    bool good = true;
    for (auto& each : input.studies) {
        each.judged = judge_study(each.results, demands, baseline ? &*baseline : nullptr);
        good &= none_broken(each.judged);
    }
    auto const document = gather_report(input);
    if (!format.empty()) {
        write_format(format, given, input, document, variables);
        for (auto const& each : input.studies) fmt::print(stderr, "{}", judgements_text(each.judged));
        return good ? 0 : 1;
    }
    print_tables(input, document);
    std::fflush(stdout);
    auto const folder = folder_of(given, input);
    make_folder(folder);
    write_report(document, folder, true, variables);
    return good ? 0 : 1;
}

}  // namespace muster
