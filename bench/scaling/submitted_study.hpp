// A study whose runs are made by batch jobs: submits one job for each number of ranks, and merges their results.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "bench/scaling/point_jobs.hpp"
#include "bench/scaling/scale_request.hpp"
#include "bench/study/study.hpp"
#include "bench/study/study_journal.hpp"
#include "bench/tools/watched_run.hpp"

namespace muster {

/// For `--submit --collect -o FOLDER` without a program, where FOLDER holds a study of jobs: returns the options and program of the command that
/// began it, preceded by those of `line`; its numbers of ranks and runs are all for which jobs were made. Returns any other command line as it is.
/// Throws errc::usage if FOLDER holds no such study.
given_options collect_as_begun(given_options const& given, std::string const& line);

/// Returns one study of what the jobs have made so far, each of which is a study of one number of ranks (empty: nothing yet):
/// machine, software and variables are those of the first. A run that a job should have made, and did not before it ended, is a
/// failed run with the job's end as its reason; those of jobs that wait or run are missing. Pure.
study merge_points(study header, std::span<std::optional<study> const> parts, std::span<point_job const> jobs);

/// FOLDER holds runs.jsonl (the plan), jobs.json, jobs/N-ranks (the study of each job), results.json.
class submitted_study {
  public:
    /// Throws errc::usage if the folder holds another study, errc::unavailable if another process has it.
    submitted_study(scale_request const& request, environment const& variables, std::string const& line);

    /// Collects the jobs' results, submits what is missing, and follows the jobs as far as asked. Checks all jobs before it
    /// queues the first one. Returns the exit code if it was stopped, or only printed jobs.
    std::optional<int> go_on();

    study const& results() const noexcept { return results_; }
    bool all_ended() const noexcept;
    /// Returns "job 12 (4 ranks): RUNNING" a line each, for those that have not ended.
    std::string live_text() const;

  private:
    std::filesystem::path folder_of(int ranks) const;
    std::vector<std::string> command_of(int ranks) const;
    std::vector<int> missing_ranks() const;
    std::string why_again(point_job const& job) const;
    void begin();
    void ask();
    void collect();
    void check(int ranks, std::string const& how, std::vector<std::string> const& command) const;
    void check_program(int ranks) const;
    void submit_missing();
    void print_missing() const;
    std::optional<int> follow();

    scale_request const& request_;
    environment const& variables_;
    option_words given_;  ///< the command line of each job, without options for the whole study
    stop_signals signals_;
    study_journal journal_;
    study header_, results_;
    std::vector<point_job> jobs_;
    std::vector<std::optional<study>> parts_;  ///< in the order of plan.ranks
};

}  // namespace muster
