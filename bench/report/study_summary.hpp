// The summary of one study: what the report shows of it, as JSON, from which all its texts are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/report/figure_text.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// Schema "muster.scaling-summary/3": rows, tiles, findings, judgements, parts of the time, values of each rank, runs, context, definitions,
/// checklist. `judged` are the bounds and the baseline that it was judged by. Pure.
report_json study_summary(study const& results, std::string const& file, std::vector<judgement> const& judged);

/// Whether it is one of the two networks under the settings of the published table of 1 to 32 GPUs: its protocol, batch 64 a rank,
/// rate 0.01 a rank, momentum 0.5. Pure.
bool has_published_settings(study const& results);

// The context of a study: all that was recorded of machine, versions, bindings and load, and what its columns mean.

/// "MNIST network, …" or the program's line with its series and batch. Pure.
std::string study_subtitle(study const& results);

/// Arrays of {"what", "value"}. What is recorded and not told in words of its own comes last, under its own name, so that no factor is
/// left out. Pure.
report_json study_context(study const& results);
report_json study_definitions(study const& results);

/// The settings and facts of a study as "plan/repeats": "6", without times and places of a single run. Pure.
std::vector<std::pair<std::string, std::string>> study_settings(study const& results);

// A reviewer's checklist of a scaling study: says for each of twelve rules whether the study follows it.

enum class rule_answer { not_known, yes, no };
std::string_view to_string(rule_answer answer) noexcept;

struct checked_rule {
    int number = 1;
    std::string rule;  ///< in our own words
    rule_answer answer = rule_answer::not_known;
    std::string reason;  ///< one sentence, from what was recorded
    bool operator==(checked_rule const&) const = default;
};

/// All twelve, in order, decided from the recorded data alone. Pure.
/// (T. Hoefler and R. Belli: Scientific Benchmarking of Parallel Computing Systems, SC'15, rules 1 to 12.)
std::vector<checked_rule> check_rules(study const& results);

}  // namespace muster
