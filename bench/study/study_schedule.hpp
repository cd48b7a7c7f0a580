// The schedule of a study: the order of its runs, and those that are still to be made.
#pragma once

#include <string>
#include <vector>

#include "bench/study/study.hpp"

namespace muster {

/// A run that is to be made.
struct due_run {
    int ranks = 1, repetition = 0;
    bool warmup = false;
    bool operator==(due_run const&) const = default;
};

/// All runs in their order: warm-up first, then the repetitions; within each the numbers of ranks take turns, as listed or, with a
/// seed, in an order drawn anew for each repetition. Pure.
std::vector<due_run> all_runs(study_plan const& plan);

/// Those of them that none of `made` has done. A run that failed or took too long is done; an interrupted one is not. `retry`:
/// those are not done either. Pure.
std::vector<due_run> missing_runs(study_plan const& plan, std::vector<study_run> const& made, bool retry = false);

/// The runs without those that were made again later. Pure.
std::vector<study_run> latest_runs(std::vector<study_run> const& made);

/// What differs between a study that was begun and what is asked for now, "ranks: 1,2 then, 1,4 now" a line each; "" if the one
/// can go on as the other, which may have more repetitions and more numbers of ranks. Pure.
std::string difference(study_plan const& begun, study_plan const& asked);

}  // namespace muster
