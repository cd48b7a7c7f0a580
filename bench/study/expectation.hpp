// Expectations of a study such as "speedup[4]>=3.5" are read, and a study's rows judged by them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/study/scaling_table.hpp"

namespace muster {

enum class bound { at_least, at_most, above, below };

/// METRIC[RANKS] OP VALUE: a bound for the median of a metric, of speedup or of efficiency.
struct expectation {
    std::string text;          ///< as it was given
    std::string metric;        ///< "speedup", "efficiency" or the name of a metric
    std::optional<int> ranks;  ///< nothing: every number of ranks (for speedup and efficiency except the base)
    bound op = bound::at_least;
    double value = 0;
    bool operator==(expectation const&) const = default;
};

/// Reads an expectation. OP is >=, <=, > or <; VALUE a number, or with "%" a hundredth of it. Blanks may stand between. Throws
/// parse_error (errc::usage) with a caret. Pure.
expectation parse_expectation(std::string const& text);

enum class expectation_outcome { kept, broken, not_judged };

/// The outcome of an expectation, in one line.
struct judgement {
    expectation_outcome came = expectation_outcome::kept;
    std::string text;                                         ///< "kept: speedup[2]>=1.5: 1.78 (1.50 to 2.13)"
    std::vector<std::pair<std::string, double>> values = {};  ///< by name: the figures of `text`
    bool operator==(judgement const&) const = default;
};

/// Returns "known are speedup, efficiency, loss; did you mean loss?" Pure.
std::string known_metrics_text(std::string const& name, std::vector<std::string> const& known);

/// Returns a judgement for each number of ranks in question. Kept or broken: the median is within or beyond the bound. Not judged: the bound
/// lies within the spread, whatever the median; one run has no spread. A metric that was not measured is broken, in one judgement if no row has
/// it. Pure.
std::vector<judgement> judge(expectation const& wanted, std::vector<scaling_row> const& rows, study_plan const& plan);

/// Throws errc::usage if a study of this plan cannot be compared with `before`: it judges another metric, has no number of ranks in common,
/// or is of another program. Pure.
void refuse_other_baseline(study_plan const& now, study const& before);

/// Compares the judged metric with that of an earlier study at the same numbers of ranks. Broken: the median is worse by more than
/// `tolerance` (0.05: a twentieth). Not judged: it is, but the spreads overlap. If arguments, work or machine differ, a note that is
/// not judged comes first. Throws as refuse_other_baseline. Pure.
std::vector<judgement> compare_with_baseline(study const& now, study const& before, double tolerance);

}  // namespace muster
