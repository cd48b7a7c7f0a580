#include "bench/scaling/plot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "bench/scaling/published_table.hpp"

namespace muster {

namespace {

// Colours that stay apart for colour-blind readers (Okabe and Ito).
constexpr char const* style =
    R"(set terminal svg size 620,400 dynamic enhanced font "Helvetica,15" rounded name "{}" background "#ffffff"
set border 3 lc rgb "#8a8f98" lw 1
set grid ytics lc rgb "#e4e7eb" lw 1 lt 1
set tics nomirror out scale 0.6 textcolor rgb "#3c4149"
set xlabel "ranks" textcolor rgb "#3c4149"
set key textcolor rgb "#3c4149" samplen 2
set style line 1 lc rgb "#0072b2" lw 2 pt 7 ps 0.9
set style line 2 lc rgb "#9aa0a8" lw 1.5 dt 2
set style line 3 lc rgb "#d55e00" lw 1.5 dt 3
)";

std::string rank_tics(std::vector<scaling_row> const& rows) {
    std::string out;
    for (auto const& r : rows) out += fmt::format("{}\"{}\" {}", out.empty() ? "" : ", ", r.ranks, r.ranks);
    return out;
}

}  // namespace

std::string speedup_script(std::vector<scaling_row> const& rows, int cores) {
    auto const known = [](scaling_row const& r) { return r.speedup.has_value(); };
    auto const first = std::find_if(rows.begin(), rows.end(), known);
    double const base = first == rows.end() ? rows.front().ranks : first->ranks, last = rows.back().ranks;
    double highest = last / base, lowest = 1;
    std::string data;
    for (auto const& r : rows) {
        if (!r.speedup) continue;
        highest = std::max(highest, r.speedup->high);
        lowest = std::min(lowest, r.speedup->low);
        data += fmt::format("{} {:.6g} {:.6g} {:.6g}\n", r.ranks, r.speedup->value, r.speedup->low, r.speedup->high);
    }
    bool const bounded = cores < last;
    return fmt::format(fmt::runtime(style), "speedup") +
           fmt::format(R"($data << EOD
{}EOD
set logscale xy 2
set xrange [{:.6g}:{:.6g}]
set yrange [{:.6g}:{:.6g}]
set xtics ({})
set ytics format "%g"
set ylabel "speed-up over {} rank{}" textcolor rgb "#3c4149"
set key top left reverse Left
ideal(x) = x / {:.6g}
bound(x) = (x < {} ? x : {}) / {:.6g}
plot ideal(x) with lines ls 2 title "ideal", \
)",
                       data, base / 1.25, last * 1.25, lowest / 1.25, highest * 1.4, rank_tics(rows), base, base == 1 ? "" : "s",
                       base, cores, cores, base) +
           (bounded
                ? fmt::format("     bound(x) with lines ls 3 title \"bound by {} core{}\", \\\n", cores, cores == 1 ? "" : "s")
                : "") +
           "     $data using 1:2:3:4 with yerrorbars ls 1 title \"measured, with interval\"\n";
}

std::string judged_script(std::vector<scaling_row> const& rows, judged_metric const& judged) {
    std::string data;
    double highest = 0;
    int shown = 0;
    for (auto const& row : rows) {
        auto const* metric = row.find(judged.name);
        if (metric == nullptr) continue;
        auto const& value = metric->value;
        data +=
            fmt::format("{} {} {:.6g} {:.6g} {:.6g}\n", shown++, row.ranks, value.median, value.spread.low, value.spread.high);
        highest = std::max(highest, value.spread.high);
    }
    return fmt::format(fmt::runtime(style), "judged") + fmt::format(R"($data << EOD
{}EOD
set boxwidth 0.5
set style fill solid 0.85 noborder
set xrange [-0.6:{:.6g}]
set yrange [0:{:.6g}]
set ylabel "{}" noenhanced textcolor rgb "#3c4149"
unset key
plot $data using 1:3:xtic(2) with boxes lc rgb "#56b4e9", \
     $data using 1:3:4:5 with yerrorbars lc rgb "#20364b" lw 1.5 pt 7 ps 0.01, \
     $data using 1:5:(sprintf("%.3g", $3)) with labels offset 0,0.8 textcolor rgb "#20364b"
)",
                                                                    data, shown - 0.4, highest > 0 ? highest * 1.15 : 1,
                                                                    is_metric_name(judged.name) ? judged.name : "judged metric");
}

std::string time_split_script(std::vector<scaling_row> const& rows) {
    std::string data;
    for (auto const& r : rows)
        data += fmt::format("{} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", r.ranks, r.median_of("startup_s"),
                            r.median_of("first_step_s"), r.median_of("compute_s"), r.median_of("allreduce_wait_s"),
                            r.median_of("loader_wait_s"), r.median_of("test_s"));
    return fmt::format(fmt::runtime(style), "split") + fmt::format(R"($data << EOD
{}EOD
set style data histograms
set style histogram rowstacked
set style fill solid 0.9 border rgb "#ffffff"
set boxwidth 0.55
set yrange [0:*]
set xrange [-0.6:{:.6g}]
set ylabel "seconds, median run" textcolor rgb "#3c4149"
set key outside right top vertical Left reverse invert width -1
plot $data using 2:xtic(1) lc rgb "#9aa0a8" title "start-up", \
     $data using 3 lc rgb "#f0e442" title "first step", \
     $data using 4 lc rgb "#0072b2" title "compute", \
     $data using 5 lc rgb "#d55e00" title "allreduce wait", \
     $data using 6 lc rgb "#cc79a7" title "loader wait", \
     $data using 7 lc rgb "#009e73" title "test"
)",
                                                                   data, static_cast<double>(rows.size()) - 0.4);
}

std::string published_script() {
    std::string data;
    for (auto const& p : published_rows) data += fmt::format("{} {} {}\n", p.gpus, p.mnist_speedup, p.cifar_speedup);
    return fmt::format(fmt::runtime(style), "published") + fmt::format(R"($data << EOD
{}EOD
set logscale xy 2
set xrange [0.8:40]
set yrange [0.8:40]
set xtics (1, 2, 4, 8, 16, 32)
set ytics (1, 2, 4, 8, 16, 32)
set xlabel "A100 GPUs"
set ylabel "speed-up over 1 GPU" textcolor rgb "#3c4149"
set key top left reverse Left
plot x with lines ls 2 title "ideal", \
     $data using 1:2 with points pt 7 ps 0.9 lc rgb "#7d8590" title "MNIST, published", \
     $data using 1:3 with points pt 9 ps 1.0 lc rgb "#b08968" title "CIFAR-10, published"
)",
                                                                       data);
}

std::string draw_svg(std::string const& script, environment const& variables) {
    if (find_program_or_nothing("gnuplot", variables).empty())
        throw error(
            errc::unavailable,
            "gnuplot, which draws the plots of the HTML report, is not in PATH; install it (Debian: apt install gnuplot-nox), "
            "or give --no-html for the table alone");
    auto how = foreground();
    how.input = script;
    auto const result = run_program({"gnuplot", "-"}, variables, how);
    auto const begin = result.out.find("<svg");
    auto const end = result.out.rfind("</svg>");
    if (result.exit_status != 0 || begin == std::string::npos || end == std::string::npos)
        throw error(errc::library, fmt::format("gnuplot ended with exit code {} and {} bytes of SVG; its messages are above",
                                               result.exit_status, result.out.size()));
    return result.out.substr(begin, end + 6 - begin);
}

}  // namespace muster
