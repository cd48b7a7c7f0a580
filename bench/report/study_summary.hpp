// The summary of one study: what the report shows of it, as JSON, from which all its texts are written.
#pragma once

#include <string>

#include "bench/report/figure_text.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// Schema "muster.scaling-summary/2": rows, tiles, findings, judgements, parts of the time, values of each rank, runs, context, definitions,
/// checklist. `judged` are the bounds and the baseline that it was judged by. Pure.
report_json study_summary(study const& results, std::string const& file, std::vector<judgement> const& judged);

/// Whether it is one of the two networks under the settings of the published table of 1 to 32 GPUs: its protocol, batch 64 a rank,
/// rate 0.01 a rank, momentum 0.5. Pure.
bool has_published_settings(study const& results);

/// The parts of a run's time that metrics tell, in the order in which they are shown.
struct time_part {
    char const* metric;
    char const* name;
    char const* colour;
};
std::span<time_part const> time_parts() noexcept;

}  // namespace muster
