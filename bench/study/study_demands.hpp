// Demands on a study beyond its table: their options, and how the study is judged by them.
#pragma once

#include <string>
#include <vector>

#include "base/command/given_options.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/study.hpp"

namespace muster {

struct study_demands {
    std::vector<expectation> expectations;
    std::string baseline;  ///< a results.json; "" without a baseline
    double tolerance = 0.05;
};

/// Reads --expect, --baseline and --tolerance. Throws parse_error (errc::usage) with a caret.
study_demands read_study_demands(given_options const& given);

/// Judges each expectation, and each number of ranks that the baseline has too. Throws errc::usage if the baseline cannot be compared.
/// Pure.
std::vector<judgement> judge_study(study const& results, study_demands const& demands, study const* baseline);

/// Returns a text about the first metric that none of the runs so far prints, though each of its `ranks` has run: "--expect los[1]<5: no run
/// of 1 rank told los; known are …"; "" if all are known. Pure.
std::string unknown_metric(study_plan const& plan, study_demands const& demands, std::vector<int> const& ranks,
                           std::vector<study_run> const& made);

/// Returns whether all are unbroken.
bool none_broken(std::vector<judgement> const& judged) noexcept;

/// Returns a line for each.
std::string judgements_text(std::vector<judgement> const& judged);

}  // namespace muster
