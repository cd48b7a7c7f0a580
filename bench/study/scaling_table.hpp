// The scaling table: its rows, computed from the runs of a study, and its text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/study/study.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

/// A metric over the runs of one number of ranks that printed it.
struct row_metric {
    std::string name, unit;
    summary value;
};

/// The ratio to the base; low and high are the least and most by the ends of both spreads, which is wider than either's confidence.
struct speedup_ratio {
    double value = 1, low = 1, high = 1;
    bool has_spread = false;  ///< both have more than one run
    /// The spread contains 1, so this may be faster or slower than the base.
    bool within_spread = false;
};

/// A run far from the others of its row. It still counts.
struct outlying_run {
    int repetition = 0;  ///< from 0
    double value = 0;
    bool operator==(outlying_run const&) const = default;
};

/// Returns, of four values or more, those whose distance from the median exceeds a fifth of it, and five times the median distance
/// (a modified z-score of 3.4: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993). Pure.
std::vector<outlying_run> outliers_of(std::vector<outlying_run> const& values);

/// One number of ranks. It counts only runs that ended well, without warm-up.
struct scaling_row {
    int ranks = 1, nodes = 1;
    int cores = 0;  ///< of all of its nodes
    std::size_t runs = 0, failed = 0;
    std::size_t lost = 0;             ///< failed runs that were never made, since their job ended before
    std::string failure;              ///< the reason of the first failure
    std::vector<row_metric> metrics;  ///< the judged one first, then in the order of their first values, wall_s last; or empty
    std::optional<speedup_ratio> speedup;  ///< nothing without a time or rate to compare
    double efficiency = 0;                 ///< speedup * base ranks / ranks; 0 without speedup
    double others = 0;                     ///< the most CPUs that other programs used before or during one of the runs
    bool crowded = false, oversubscribed = false, simulated = false;
    bool several_told = false;           ///< several ranks printed the judged metric
    std::vector<outlying_run> outliers;  ///< of the judged metric

    row_metric const* find(std::string_view name) const noexcept;
    double median_of(std::string_view name) const noexcept;  ///< 0 if no run has it
};

/// Returns the rows in order of ranks. The base of every speed-up is the first row that has the judged metric. A speed-up is base
/// time / time for a fixed or given amount of work, (base time * ranks) / (time * base ranks) for a weak series, rate / base rate
/// for a rate. Pure.
std::vector<scaling_row> scaling_rows(study const& results);

/// Returns how the plan chooses the value of a metric among its ranks' values.
metric_choice choice_of(std::string const& name, study_plan const& plan);

/// Returns a run's value of a metric, as the plan chooses among its ranks' values; nothing without values. Pure.
std::optional<double> value_of(study_run const& run, std::string const& name, study_plan const& plan);

/// Returns the row that is the base; nothing if no row has the judged metric.
scaling_row const* base_row(std::vector<scaling_row> const& rows, study_plan const& plan) noexcept;

/// Returns the row that stands for a study: the fastest beyond the spreads, else the one with the most ranks, of the rows with enough cores (of
/// all, if only the base has enough); nothing if no row has the judged metric.
scaling_row const* best_row(std::vector<scaling_row> const& rows, study_plan const& plan) noexcept;

/// Returns the metrics of all rows, the judged one first, wall_s last.
std::vector<std::string> metric_names(std::vector<scaling_row> const& rows, std::string const& judged);

/// Returns whether it is more efficient than its base.
bool exceeds_base(scaling_row const& row) noexcept;

/// Returns as much as applies of "2 of 6 failed: exit code 3; oversubscribed: 4 ranks on 2 cores; busy: …; simulated", or "".
std::string scaling_note(scaling_row const& row);

/// The numbers of runs that a study should make and has made, without warm-up.
struct study_progress {
    struct point {
        int ranks, made;
    };
    std::int64_t planned = 0, made = 0;
    int repeats = 0;
    std::vector<point> missing;  ///< numbers of ranks without all of their runs
};
study_progress progress_of(study const& results);
/// Returns "6 of 9 runs were made (4 ranks: 0 of 3)"; "" if all were.
std::string unfinished_text(study_progress const& progress);

/// Returns what makes all figures of a study uncertain, a line each: "unfinished: 6 of 9 runs were made (…)", "note: …", "busy: …". Pure.
std::vector<std::string> reservations_of(study const& results, std::vector<scaling_row> const& rows);
/// Returns the text in lines of a terminal's 80 columns, divided at blanks.
std::string paragraph(std::string const& text);

/// Returns "1.78", "within the spread", or "-".
std::string format_speedup(scaling_row const& row);
/// Returns "89%" or "-", as above.
std::string format_efficiency(scaling_row const& row);

/// Returns a study in one sentence.
std::string headline_of(study const& results);

/// Returns the headline and the table, 80 columns wide, with lines that explain the base and the spreads, and say what is wrong.
std::string scaling_text(study const& results);

/// A number of ranks has several values of the metric.
bool has_spreads(std::vector<scaling_row> const& rows, std::string const& metric);

/// "rate (images)": the metric with its unit, where its name does not say that.
std::string with_unit(std::vector<scaling_row> const& rows, std::string const& metric);

/// Returns "0.52 to 0.61 (97% CI)"; "(range)" if fewer than six values give no interval; "one run". `unit` scales.
std::string format_spread(summary const& value, double unit = 1);

/// Returns three significant digits, in plain notation, thousands without separators.
std::string format_value(double value);

// The published table of 1 to 32 GPUs, from which this benchmark takes its protocol.

/// Seconds for 32 epochs of training and testing with PyTorch and Horovod on DGX A100 nodes, 8 GPUs each, with batch 64 per GPU
/// and one run per point. Source: argonne-lcf/sdl_ai_workshop, 01_distributedDeepLearning/Horovod (December 2020), quoted in
/// argonne-lcf/CompPerfWorkshop-2021.
struct published_row {
    int gpus;
    double cifar_s, cifar_speedup, mnist_s, mnist_speedup;
    int cifar_step_ms, mnist_step_ms;
};

inline constexpr std::array<published_row, 6> published_rows{{{1, 522.3, 1.00, 499.8, 1.00, 17, 14},
                                                              {2, 318.8, 1.64, 283.9, 1.76, 21, 16},
                                                              {4, 121.4, 4.30, 100.4, 4.98, 16, 11},
                                                              {8, 73.5, 7.11, 58.8, 8.50, 19, 13},
                                                              {16, 79.1, 6.60, 63.8, 7.83, 42, 29},
                                                              {32, 81.1, 6.44, 55.7, 8.97, 84, 50}}};

}  // namespace muster
