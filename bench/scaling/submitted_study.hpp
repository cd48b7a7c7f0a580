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

/// `--submit --collect -o FOLDER` without a program, where FOLDER holds a study of jobs: the options and program of the command that began it, with
/// those of `line` before them; its numbers of ranks and runs are all that jobs were made for. Any other command line as it is. Throws errc::usage
/// where FOLDER holds no such study.
given_options collect_as_begun(given_options const& given, std::string const& line);

/// One study from what the jobs bring, each of which is a study of one number of ranks (nothing yet: an empty optional): machine,
/// software and variables are the first one's. A run that a job should have made, and did not before it ended, is a failed run with
/// the job's end as its reason; those of jobs that wait or run are missing. Pure.
study merge_points(study header, std::span<std::optional<study> const> parts, std::span<point_job const> jobs);

/// In FOLDER: runs.jsonl (the plan), jobs.json, jobs/N-ranks (the study of each job), results.json.
class submitted_study {
  public:
    /// Throws errc::usage where the folder holds another study, errc::unavailable where another process has it.
    submitted_study(scale_request const& request, environment const& variables, std::string const& line);

    /// Collects what jobs have brought, submits what is missing, and follows the jobs as far as that is asked for. All jobs are
    /// checked before the first one is queued. Returns the exit code where it was stopped, or printed jobs only.
    std::optional<int> go_on();

    study const& results() const noexcept { return results_; }
    bool all_ended() const noexcept;
    /// "job 12 (4 ranks): RUNNING" a line each, of those that have not ended.
    std::string live_text() const;

  private:
    std::filesystem::path folder_of(int ranks) const;
    std::vector<std::string> command_of(int ranks) const;
    std::vector<int> missing_ranks() const;
    std::string why_again(point_job const& job) const;
    void begin(std::string const& line);
    void ask();
    void collect();
    void check(int ranks, std::string const& how, std::vector<std::string> const& command) const;
    void check_program(int ranks) const;
    void submit_missing();
    void print_missing() const;
    std::optional<int> follow();

    scale_request const& request_;
    environment const& variables_;
    option_words given_;  ///< the command line of each job, without what concerns the whole study
    stop_signals signals_;
    study_journal journal_;
    study header_, results_;
    std::vector<point_job> jobs_;
    std::vector<std::optional<study>> parts_;  ///< as plan.ranks
};

}  // namespace muster
