// The schedule of a study: the order of its runs, and those not made yet.
#pragma once

#include <string>
#include <vector>

#include "bench/study/study.hpp"

namespace muster {

/// A run to make.
struct due_run {
    int ranks = 1, repetition = 0;
    bool warmup = false;
    bool operator==(due_run const&) const = default;
};

/// Returns all runs in their order: warm-up first, then the repetitions; within each the numbers of ranks take turns, as listed
/// or, with a seed, in an order drawn for each repetition. Pure.
std::vector<due_run> all_runs(study_plan const& plan);

/// Returns those of them that none of `made` has done. A run that failed or took too long is done, except with `retry`; an
/// interrupted one is not. Pure.
std::vector<due_run> missing_runs(study_plan const& plan, std::vector<study_run> const& made, bool retry = false);

/// Returns the runs without those that were made again later. Pure.
std::vector<study_run> latest_runs(std::vector<study_run> const& made);

/// Returns what differs between an earlier study and the present request, "ranks: 1,2 then, 1,4 now" a line each; "" if the one
/// can go on as the other, which may have more repetitions and more numbers of ranks. Pure.
std::string difference(study_plan const& begun, study_plan const& asked);

}  // namespace muster
