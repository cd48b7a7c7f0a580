// The summary of one study: computes what the report shows of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/report/busbw_table.hpp"
#include "bench/report/checklist.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// The number of ranks that the study is shown by.
struct best_point {
    int ranks = 1, nodes = 1;
    row_metric judged;
    bool base = false;        ///< it is the one that the others are compared with
    std::int64_t others = 0;  ///< other rows with a speed-up
    std::optional<speedup_ratio> speedup;
    double efficiency = 0;
};

enum class bad_news_kind { unfinished, failed, broken, busy, simulated, cause };
std::string_view to_string(bad_news_kind kind) noexcept;

/// Something that a reader must know before the figures.
struct bad_news {
    bad_news_kind kind = bad_news_kind::busy;
    std::int64_t count = 0, of = 0;  ///< runs made of those planned, failed of those made, bounds broken of those judged
    cause why = cause::serial_part;  ///< of a cause, as `ranks`
    int ranks = 0;
    std::optional<double> share, ranks_of_core;  ///< the cause's figure
};

/// A metric as each rank reported it, in each run of one number of ranks.
struct rank_strip {
    struct run {
        int repetition = 1;
        std::vector<std::optional<double>> values;  ///< by rank
    };
    std::string metric, unit;
    int ranks = 0;
    std::vector<run> runs;
};

/// A run as the report lists it; order and repetition from 1.
struct shown_run {
    int order = 1, ranks = 1, repetition = 1;
    bool warmup = false;
    run_status status = run_status::ok;
    std::string started, reason, failure, output;
    std::optional<double> load_average;
    double others = 0;  ///< CPUs that other programs used
    std::vector<std::pair<std::string, double>> metrics;

    std::optional<double> find(std::string_view metric) const noexcept;
};

struct study_summary {
    std::string label, name, file, created, host;
    int cores = 0;
    std::string subtitle, judged, judged_unit;
    bool judged_rate = false;
    work_series series = work_series::as_given;
    std::optional<int> base_ranks;
    bool busy = false;
    std::string busy_text;
    std::vector<std::string> notes;  ///< what a reader must know of every figure
    bool published_settings = false;
    std::vector<std::string> metrics;  ///< of all rows, the judged one first, wall_s last
    std::string headline;
    std::string unfinished;  ///< what is missing; "" if all runs were made
    std::optional<best_point> best;
    std::vector<bad_news> bad;  ///< the worst first
    std::vector<scaling_row> rows;
    std::vector<scaling_finding> findings;
    std::vector<judgement> judgements;
    std::optional<rank_strip> by_rank;
    std::vector<shown_run> runs;
    std::vector<report_fact> context, definitions;
    std::vector<checked_rule> checklist;
};

/// `judged` are the bounds and the baseline that it was judged by. Pure.
study_summary summarise_study(study const& results, std::string const& label, std::string const& file,
                              std::vector<judgement> const& judged);

/// Returns whether it is one of the two networks under the settings of the published table of 1 to 32 GPUs: its protocol, batch 64 a rank,
/// rate 0.01 a rank, momentum 0.5. Pure.
bool has_published_settings(study const& results);

}  // namespace muster
