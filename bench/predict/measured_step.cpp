#include "bench/predict/measured_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/error.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

/// How a step's time follows from a row of the study.
struct step_time {
    std::string from;
    std::function<double(scaling_row const&)> seconds = {};
    bool over_steps = false;  ///< it is the time of all steps of a run
};

bool is_told(std::vector<scaling_row> const& rows, std::string_view name) {
    return std::ranges::any_of(rows, [&](auto const& row) { return row.median_of(name) > 0; });
}

/// Of one of its units, by the metric's unit or the end of its name; a time without either is in seconds.
double seconds_in(std::vector<scaling_row> const& rows, std::string const& name) {
    std::string unit;
    for (auto const& row : rows)
        if (auto const* found = row.find(name)) unit = found->unit;
    auto const is = [&](std::string_view one) { return unit == one || (unit.empty() && name.ends_with("_" + std::string(one))); };
    return is("ms") ? 1e-3 : is("us") ? 1e-6 : is("min") ? 60 : is("h") ? 3600 : 1;
}

/// A rate of what a batch is counted in, by its name (images_per_s) or its unit (images/s).
bool counts_samples(row_metric const& rate) {
    constexpr std::string_view samples[]{"images", "samples", "examples", "items", "sequences", "records", "rows"};
    return std::ranges::any_of(samples, [&](std::string_view sample) {
        std::string const one(sample);
        return rate.name == one + "_per_s" || rate.unit == one + "/s";
    });
}

std::optional<step_time> time_over_steps(study const& results, std::vector<scaling_row> const& rows) {
    auto const& judged = results.plan.judged;
    bool const judged_time = !judged.rate && judged.name != "wall_s" && is_told(rows, judged.name);
    if (!is_told(rows, "train_s") && !judged_time) return {};
    std::string const name = is_told(rows, "train_s") ? "train_s" : judged.name;
    double const unit = seconds_in(rows, name);
    return step_time{name, [=](auto const& row) { return row.median_of(name) * unit; }, true};
}

std::optional<step_time> time_by_rate(study const& results, std::vector<scaling_row> const& rows) {
    auto const inverse = [](std::string const& name, double work, bool each) {
        return [=](scaling_row const& row) {
            double const rate = row.median_of(name);
            return rate > 0 ? work * (each ? row.ranks : 1) / rate : 0;
        };
    };
    if (is_told(rows, "steps_per_s")) return step_time{"1 / steps_per_s", inverse("steps_per_s", 1, false)};
    if (!results.plan.batch) return {};
    bool const weak = results.plan.series == work_series::weak;
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (counts_samples(metric))
                return step_time{fmt::format("batch {}{} / {}", *results.plan.batch, weak ? " x ranks" : "", metric.name),
                                 inverse(metric.name, static_cast<double>(*results.plan.batch), weak)};
    return {};
}

std::optional<step_time> step_time_of(study const& results, std::vector<scaling_row> const& rows) {
    for (std::string const name : {"step_s", "step_ms"})
        if (is_told(rows, name))
            return step_time{name, [=](auto const& row) { return row.median_of(name) * (name == "step_s" ? 1 : 1e-3); }};
    if (auto const found = time_over_steps(results, rows)) return found;
    return time_by_rate(results, rows);
}

bool waits(scaling_row const& row) {
    return row.median_of("loader_wait_s") > 0 || row.median_of("allreduce_wait_s") > 0;
}

/// Nothing where the number of its steps is needed and not known.
std::optional<measured_step> step_of_row(scaling_row const& row, step_time const& time, std::optional<double> steps) {
    double const made = steps.value_or(row.median_of("steps")), seconds = time.seconds(row);
    bool const waiting = waits(row);
    if (!(made > 0) && (time.over_steps || waiting)) return {};
    measured_step out{.ranks = row.ranks, .step_s = time.over_steps ? seconds / made : seconds};
    out.input_s = waiting ? row.median_of("loader_wait_s") / made : 0;
    out.exposed_s = waiting ? row.median_of("allreduce_wait_s") / made : 0;
    out.compute_s = std::max(0.0, out.step_s - out.input_s - out.exposed_s);
    out.input_told = row.find("loader_wait_s") != nullptr;
    out.exposed_told = row.find("allreduce_wait_s") != nullptr;
    out.oversubscribed = row.oversubscribed;
    return out;
}

/// Each run for itself, as a row of one run. One without the waiting that others of its row print says nothing.
void spread_over_runs(measured_step& step, study const& results, scaling_row const& row, step_time const& time,
                      std::optional<double> steps) {
    step.least_compute_s = step.most_compute_s = step.compute_s;
    study alone;
    alone.plan = results.plan;
    for (auto const& run : results.runs) {
        if (run.ranks != row.ranks || !run.counts()) continue;
        alone.runs = {run};
        auto const only = scaling_rows(alone).front();
        bool const whole = std::ranges::all_of(std::array{"loader_wait_s", "allreduce_wait_s"}, [&](auto const* name) {
            return (row.find(name) == nullptr) == (only.find(name) == nullptr);
        });
        auto const one = whole && time.seconds(only) > 0 ? step_of_row(only, time, steps) : std::nullopt;
        if (!one) continue;
        ++step.runs;
        step.least_compute_s = std::min(step.least_compute_s, one->compute_s);
        step.most_compute_s = std::max(step.most_compute_s, one->compute_s);
    }
}

/// Of a rate that looks like one of samples and is not taken.
std::string why_no_rate(study const& results, std::vector<scaling_row> const& rows) {
    auto const& rate = results.plan.judged;
    if (!rate.rate || !is_told(rows, rate.name)) return {};
    if (!results.plan.batch) return fmt::format(", and {} tells no step without the --batch of --strong or --weak", rate.name);
    return fmt::format(
        ", and {} does not say that it counts what --batch counts (print it with the unit images/s, samples/s, "
        "sequences/s or rows/s)",
        rate.name);
}

[[noreturn]] void refuse_study(std::string const& origin, std::string const& why) {
    throw error(errc::invalid_data, fmt::format("{}: {}", origin, why));
}

}  // namespace

measured_steps steps_of_study(study const& results, std::optional<double> steps, std::string const& origin, bool needed) {
    auto const rows = scaling_rows(results);
    if (std::ranges::any_of(rows, &scaling_row::simulated))
        refuse_study(origin, "is simulated; a prediction rests on measured runs only");
    if (std::ranges::none_of(rows, [](auto const& row) { return row.runs > 0; }))
        refuse_study(origin, "no run ended well; a prediction rests on measured runs");
    auto const time = step_time_of(results, rows);
    if (!time && needed)
        refuse_study(
            origin,
            fmt::format(
                "tells no time of its steps: wall_s holds launching and start-up too{}; print the seconds of the training loop "
                "('muster-metric: train_s SECONDS s'), judge the study by a time of the loop (--time-metric) or by a rate of "
                "samples with --batch, or give --compute-ms",
                why_no_rate(results, rows)));
    measured_steps out;
    if (!time) return out;
    out.given_steps = steps && time->over_steps;
    out.from = !time->over_steps ? time->from : fmt::format("{} / {}", time->from, steps ? fmt::format("{:g}", *steps) : "steps");
    for (auto const& row : rows) {
        if (!(time->seconds(row) > 0)) continue;
        auto step = step_of_row(row, *time, steps);
        if (!step) {
            if (!needed) return {};
            refuse_study(origin,
                         "its program does not say how many steps a run makes; print the metric 'steps', or give --steps");
        }
        spread_over_runs(*step, results, row, *time, steps);
        out.over_steps |= time->over_steps || waits(row);
        out.rows.push_back(*step);
    }
    return out;
}

}  // namespace muster
