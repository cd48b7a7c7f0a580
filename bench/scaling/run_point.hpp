// One run of a scaling study: starts it, reads its metrics, and says how it ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/study/placeholders.hpp"
#include "bench/study/study.hpp"
#include "bench/study/study_schedule.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/watched_run.hpp"

namespace muster {

/// The setting that all runs of a study share.
struct run_setting {
    std::string muster;
    std::filesystem::path folder;  ///< the study's
    study_plan const& plan;
    environment const& variables;
    stop_signals& signals;
    bool local = true;      ///< all ranks are children of this process
    std::string outputs{};  ///< the names of the files with their output begin with this
};

/// Returns the numbers that stand for a run in the arguments of its program.
run_numbers numbers_of(study_plan const& plan, due_run const& due, int nodes);

/// Returns the command of a run.
std::vector<std::string> run_command(run_setting const& setting, due_run const& due, int nodes);

/// A run that has not begun: which one it is, and where.
study_run run_at(due_run const& due, study_point const& point);

/// Runs it; `crowd` has watched the machine since just before. Never throws because of what the program does.
study_run run_point(run_setting const& setting, due_run const& due, study_point const& point, int order, crowd_watch& crowd);

/// Returns "1.23 s, images_per_s 12345", or the reason of its failure, for a line of progress.
std::string progress_text(study_run const& run, study_plan const& plan);

}  // namespace muster
