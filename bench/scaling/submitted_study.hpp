// A study whose runs are made by batch jobs: submits one job for each number of ranks, and merges their results.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "bench/scaling/scale_request.hpp"
#include "bench/study/study.hpp"
#include "bench/study/study_journal.hpp"
#include "bench/tools/watched_run.hpp"

namespace muster {

enum class point_phase { waiting, running, ended };

struct point_job {
    int ranks = 1;
    std::string id;
    std::string output;     ///< the file of what the job itself prints; "" where the scheduler chooses it
    std::string submitted;  ///< UTC, ISO 8601
    point_phase phase = point_phase::waiting;
    std::string state;           ///< in the scheduler's words, "RUNNING", "CANCELLED", "FAILED, exit code 2"
    int repeats = most_repeats;  ///< that it was to make; this where jobs.json does not tell
    bool operator==(point_job const&) const = default;
    bool ended() const noexcept { return phase == point_phase::ended; }
};

/// FOLDER/jobs.json, in the order in which they were submitted; none where there is no such file. Throws errc::invalid_data.
std::vector<point_job> read_point_jobs(std::filesystem::path const& folder);
void write_point_jobs(std::filesystem::path const& folder, std::vector<point_job> const& jobs);

/// The words of `muster submit` for a job of `ranks` in which `command` runs once, a GPU each where the site has GPUs. `options` go before
/// ours; a --ranks among them, whose number is replaced, asks for ranks without GPUs.
std::vector<std::string> submit_words(std::string const& muster, int ranks, std::vector<std::string> const& options,
                                      std::vector<std::string> const& command);

/// Submits it; prints each note of muster's that is not among `told`, and adds it there. Throws errc::unavailable with what muster said.
point_job submit_point(std::vector<std::string> const& words, int ranks, std::vector<std::string>& told,
                       environment const& variables);

/// Sets its phase and state. A job that the scheduler has forgotten has ended. Throws errc::unavailable where no scheduler answers.
void ask_for(point_job& job, std::string const& muster, environment const& variables);

/// `--submit --collect -o FOLDER` without a program, where FOLDER holds a study of jobs: the options and program of the command that began it, with
/// those of `line` before them; its numbers of ranks and runs are all that jobs were made for. Any other command line as it is.
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
