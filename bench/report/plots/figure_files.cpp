#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "bench/report/plots/report_charts.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr char const* pdf_writer = "rsvg-convert";
constexpr std::chrono::minutes pdf_limit{1};

/// "Speed-up: weak scaling" as the name of a file: speed-up-weak-scaling.
std::string file_name_of(std::string const& title) {
    std::string out;
    for (char const c : title)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
            out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        else if (!out.empty() && out.back() != '-')
            out += '-';
    while (!out.empty() && out.back() == '-') out.pop_back();
    return out.empty() ? "figure" : out.substr(0, 100);
}

/// False: the program is not there.
bool write_pdf(std::string const& svg, std::string const& pdf, environment const& variables) {
    auto const ended = run_captured({pdf_writer, "--format=pdf", "--output=" + pdf, svg}, variables, pdf_limit);
    if (ended.exit_status == 127) return false;
    if (ended.exit_status == 0) return true;
    throw error(errc::io, fmt::format("{} {} ended with exit code {}: {}; convert the figure with another program", pdf_writer,
                                      svg, ended.exit_status, without_controls(trim(ended.err))));
}

}  // namespace

written_figures write_figures(report_json const& document, fs::path const& folder, environment const& variables) {
    written_figures out;
    for (auto const& chart : all_charts(document)) {
        auto const name = file_name_of(chart.title);
        auto path = (folder / name).string();
        for (int i = 2; std::ranges::find(out.files, path + ".svg") != out.files.end(); ++i)
            path = (folder / fmt::format("{}-{}", name, i)).string();
        write_output_file(path + ".svg", standalone_svg(chart.svg, chart.legend), "give another folder with --figures");
        out.files.push_back(path + ".svg");
        out.pdf = out.pdf && write_pdf(path + ".svg", path + ".pdf", variables);
    }
    return out;
}

}  // namespace muster
