#include "bench/scaling/scaling_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text_table.hpp"

namespace muster {

namespace {

using runs = std::vector<study_run const*>;

template <class Measure>
std::vector<double> measured(runs const& of, Measure const& measure) {
    std::vector<double> out;
    for (auto const* run : of) out.push_back(measure(*run));
    return out;
}

double steady_rate(study_run const& run) {
    double images = 0, seconds = 0;
    for (auto const& e : run.train.epochs_done) {
        images += e.images_per_s * e.steady_s;
        seconds += e.steady_s;
    }
    return seconds > 0 ? images / seconds : 0;
}

template <class Part>
double sum_over_epochs(study_run const& run, Part const& part) {
    double sum = 0;
    for (auto const& e : run.train.epochs_done) sum += part(e);
    return sum;
}

scaling_row make_row(runs const& of) {
    scaling_row row;
    row.ranks = of.front()->ranks;
    row.train_s = summarise(measured(of, [](auto const& r) { return r.train.train_s(); }));
    row.images_per_s = summarise(measured(of, steady_rate));
    row.accuracy = summarise(measured(of, [](auto const& r) { return r.train.epochs_done.back().accuracy(); }));
    auto const middle = [&](auto const& part) {
        return median(measured(of, [&](auto const& r) { return sum_over_epochs(r, part); }));
    };
    row.startup_s = median(measured(of, [](auto const& r) { return r.train.startup_s; }));
    row.first_step_s = middle([](auto const& e) { return e.first_step_s; });
    row.allreduce_wait_s = middle([](auto const& e) { return e.allreduce_wait_mean_s; });
    row.loader_wait_s = middle([](auto const& e) { return e.loader_wait_mean_s; });
    row.compute_s = middle(
        [](auto const& e) { return std::max(0.0, e.train_s - e.first_step_s - e.allreduce_wait_mean_s - e.loader_wait_mean_s); });
    row.test_s = median(measured(of, [](auto const& r) { return r.train.test_s(); }));
    row.wall_s = median(measured(of, [](auto const& r) { return r.wall_s; }));
    row.oversubscribed = std::any_of(of.begin(), of.end(), [](auto const* r) { return r->oversubscribed; });
    row.simulated = std::any_of(of.begin(), of.end(), [](auto const* r) { return r->simulated; });
    return row;
}

}  // namespace

std::vector<scaling_row> scaling_rows(study const& results) {
    std::map<int, runs> by_ranks;
    for (auto const& run : results.runs) by_ranks[run.ranks].push_back(&run);
    std::vector<scaling_row> rows;
    for (auto const& [ranks, of] : by_ranks) {
        auto row = make_row(of);
        auto const& base = rows.empty() ? row : rows.front();
        row.speedup = base.train_s.median / row.train_s.median;
        row.speedup_low = base.train_s.spread.low / row.train_s.spread.high;
        row.speedup_high = base.train_s.spread.high / row.train_s.spread.low;
        row.efficiency = row.speedup * base.ranks / row.ranks;
        if (rows.empty()) row.speedup_low = row.speedup_high = 1;
        rows.push_back(row);
    }
    return rows;
}

std::string scaling_note(scaling_row const& row, int cores) {
    std::string note;
    if (row.oversubscribed) note = fmt::format("oversubscribed: {} ranks on {} core{}", row.ranks, cores, cores == 1 ? "" : "s");
    if (row.simulated) note += note.empty() ? "simulated" : ", simulated";
    return note;
}

std::string format_value(double value) {
    if (!std::isfinite(value)) return fmt::format("{}", value);
    double const size = std::abs(value);
    int const digits = size >= 100 || size == 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
    return fmt::format("{:.{}f}", value, digits);
}

std::string format_spread(summary const& value, double unit) {
    if (value.count < 2) return "one run";
    return fmt::format("{} to {} ({:.0f}% CI)", format_value(value.spread.low * unit), format_value(value.spread.high * unit),
                       100 * value.spread.confidence);
}

std::string scaling_text(study const& results) {
    auto const rows = scaling_rows(results);
    std::vector<std::vector<std::string>> cells{{"ranks", "train s", "spread", "images/s", "speed-up", "efficiency", "accuracy",
                                                 "start-up s", "test s", "wall s", "note"}};
    for (auto const& r : rows)
        cells.push_back({std::to_string(r.ranks), format_value(r.train_s.median), format_spread(r.train_s),
                         fmt::format("{:.0f}", r.images_per_s.median), fmt::format("{:.2f}", r.speedup),
                         fmt::format("{:.0f}%", 100 * r.efficiency), fmt::format("{:.2f}%", 100 * r.accuracy.median),
                         format_value(r.startup_s), format_value(r.test_s), format_value(r.wall_s),
                         scaling_note(r, results.machine.cores)});
    auto const& run = results.runs.front().train;
    return align_columns(cells) +
           fmt::format(
               "medians of {} run{} each; speed-up against {} rank{} ({} s for {} epoch{} of {} images); batch {} a rank\n",
               rows.front().train_s.count, rows.front().train_s.count == 1 ? "" : "s", rows.front().ranks,
               rows.front().ranks == 1 ? "" : "s", format_value(rows.front().train_s.median), run.epochs,
               run.epochs == 1 ? "" : "s", run.epochs_done.front().images, run.batch);
}

}  // namespace muster
