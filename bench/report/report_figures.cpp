#include "bench/report/report_figures.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"
#include "bench/report/report_page.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds import_limit{30};
constexpr std::chrono::minutes drawing_limit{5};  // the first time Matplotlib lists all fonts

constexpr char const* no_matplotlib =
    "neither /usr/bin/python3 nor the python3 along PATH has Matplotlib (Debian: python3-matplotlib; pip install matplotlib)";

/// Returns "" if no interpreter has it.
std::string python_with_matplotlib(environment const& variables) {
    for (std::string const each : {"/usr/bin/python3", "python3"})
        if (!find_program_or_nothing(each, variables).empty() &&
            run_captured({each, "-c", "import matplotlib"}, variables, import_limit).exit_status == 0)
            return each;
    return {};
}

std::string last_line(std::string const& text) {
    auto const lines = trim(text);
    return without_controls(lines.substr(lines.rfind('\n') + 1));
}

std::string read_svg(fs::path const& path) {
    auto text = read_text_file(path.string(), SIZE_MAX);
    if (text.empty()) throw_error(errc::io, "cannot read the figure {}; see that plots.py writes what it prints", path.string());
    return text;
}

/// Lines of "FILE.svg<tab>CAPTION"; what else is printed is the user's own.
std::vector<report_figure> figures_in(std::string const& printed, fs::path const& folder) {
    std::vector<report_figure> out;
    for (auto const line : split(printed, '\n')) {
        auto const tab = line.find('\t');
        if (tab == line.npos) continue;
        std::string const file(line.substr(0, tab));
        if (!file.ends_with(".svg") || file.find('/') != file.npos) continue;
        out.push_back({file, std::string(line.substr(tab + 1)), read_svg(folder / file)});
    }
    return out;
}

}  // namespace

std::string own_plots_script() {
    return std::string(find_text(report_templates(), "plots.py"));
}

std::string plots_script_of(fs::path const& folder) {
    auto const path = (folder / "plots.py").string();
    auto const own = own_plots_script();
    auto const there = read_trusted_file(path, "script");
    if (!there.distrust.empty()) {
        if (read_small_file(path, "script") != own)
            fmt::print(stderr, "{} is not run: {}; this version's is\n", path, there.distrust);
        return own;
    }
    if (!there.text) {
        write_output_file(path, own, "give another folder with -o");
        fmt::print(stderr, "wrote {}\n", path);
        return own;
    }
    if (*there.text != own) fmt::print(stderr, "kept {}, which is not as this version writes it\n", path);
    return *there.text;
}

report_figures draw_figures(std::string const& script, fs::path const& summary, fs::path const& folder,
                            environment const& variables) {
    auto own = variables;
    own.set("PYTHONSAFEPATH", "1");  // modules come from Python's own folders, not from where the results lie
    auto const python = python_with_matplotlib(own);
    if (python.empty()) return {{}, no_matplotlib};
    capture_options how;
    how.limit = drawing_limit;
    how.input = script;
    auto const ended = run_program({python, "-", summary.string(), folder.string()}, own, how);
    if (ended.exit_status == 124) return {{}, fmt::format("plots.py was not done after {} minutes", drawing_limit.count())};
    if (ended.exit_status != 0)
        return {{}, fmt::format("plots.py ended with exit code {}: {}", ended.exit_status, last_line(ended.err))};
    return {figures_in(ended.out, folder), {}};
}

std::string data_url(std::string_view svg) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out = "data:image/svg+xml;base64,";
    for (std::size_t i = 0; i < svg.size(); i += 3) {
        auto const three = svg.substr(i, 3);
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < 3; ++byte) bits = bits << 8 | (byte < three.size() ? std::uint8_t(three[byte]) : 0u);
        for (std::size_t digit = 0; digit < 4; ++digit)
            out += digit <= three.size() ? digits[bits >> (18 - 6 * digit) & 63] : '=';
    }
    return out;
}

}  // namespace muster
