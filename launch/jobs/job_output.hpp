// Helpers of the commands about jobs: they read job numbers from command lines and find the files of a job.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/jobs/job_record.hpp"
#include "launch/jobs/queue/job_paths.hpp"
#include "launch/jobs/queue/queued_job.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

/// Returns the checked words, with a SLUID replaced by the number that Slurm gives for it. Throws errc::usage for no words, and
/// for one that is no job number.
std::vector<std::string> job_numbers(std::vector<std::string> const& words, std::string_view command,
                                     environment const& variables);

nlohmann::ordered_json json_of(queued_job const& job);

/// Returns the states of these jobs (one job, or an array's tasks): "RUNNING"; "2 RUNNING (114_0, 114_2), 1 CANCELLED (114_1)".
/// Pure.
std::string list_states(std::vector<queued_job> const& jobs);

/// A file or run folder that a job named and another job writes to.
struct shared_file {
    std::string path;
    bool is_others = false;  ///< the content is the other job's: none of it is shown
    std::string why;         ///< for people; empty: the job has not begun the file yet
};

/// The files of a job, as far as they are known.
struct job_files {
    std::string output;                    ///< the scheduler's file; empty: not known
    std::vector<std::string> run_folders;  ///< existing ones, in the order of the runs
    std::string first_folder;              ///< where the first run's folder will be; empty: not known
    std::string errors;                    ///< the scheduler's file of standard error, if that is another file; empty: not known
    std::vector<shared_file> shared;       ///< none of the fields above names a file with `is_others`
    std::map<std::string, std::string>
        run_names;  ///< by folder, for a job whose runs' folders have unrelated names: tells the lines of the runs apart
};

/// Returns whether `word` names a run's folder (with run.json in it) and no job. Its runs, of several generations too, are the
/// files of a job without a number.
bool is_run_folder(std::string const& word);
job_files files_of_run(std::string const& folder);

/// Returns the folders rank.NN or, with the prefix "spare.", spare.NN of a run's folder, by their numbers.
std::map<int, std::string> rank_folders(std::string const& run_folder, std::string_view prefix = "rank.");

/// A run whose record says when it began.
struct started_run {
    std::string started_at, folder;
};

/// The end of a run, as run.json tells it.
struct run_end {
    int code = 0;
    std::string at, cause;  ///< empty: not recorded
};
/// Returns nothing for a run without a recorded end.
std::optional<run_end> read_run_end(std::string const& run_folder);

/// Returns the process that led a run without a recorded end, "process 4711 of node1", if it no longer exists; nothing if it
/// lives or cannot be seen from this host.
std::optional<std::string> find_gone_process(std::string const& run_folder);

/// Returns the exit code of the job's last run.
std::optional<int> last_run_exit(job_files const& files);

/// Returns whether the output of a chain's job says that an earlier job had ended the work: such a job has no run, and its code
/// is 0.
bool had_nothing_to_do(job_files const& files);

/// A job, or a task of an array: its number as it is shown ("12_3") and as %j stands for it ("15"). With PBS both are the same.
struct job_number {
    std::string shown, raw;
};

/// Returns, by index, the tasks of an array ("12[].server", "12") that have run folders, or output files in this folder; for one
/// task ("12_3") that task; nothing for any other job.
std::vector<job_number> list_tasks(std::string const& asked, std::optional<job_record> const& record);

/// Returns the job `asked`, or the tasks of that array that have begun, by index: those in `jobs` (the scheduler's answer, in
/// which other jobs are ignored) and those that the scheduler has forgotten.
std::vector<job_number> list_parts(std::vector<queued_job> const& jobs, std::string const& asked,
                                   std::optional<job_record> const& record);

/// Finds the files by muster's record of the job or, without one, in muster-runs of this folder. `asked` is the number that %j
/// stands for; PBS' server may be left out.
job_files find_job_files(std::string const& asked, std::optional<job_record> const& record);

/// Returns the record of a job, with the folder that --output-dir names. Without a record only that folder is set.
std::optional<job_record> find_job_record(std::string const& id, settings_result const& given, environment const& variables);

/// Does the same. For a job that muster has not submitted it also finds the files that the scheduler knows, which it asks once
/// for each job, and run folders with other names in this folder or one below it.
class job_file_finder {
  public:
    /// `kind`: nothing if there is no scheduler. `variables` must outlive it.
    job_file_finder(std::optional<queue_kind> kind, environment const& variables) : kind_(kind), variables_(variables) {}
    job_files find(job_number const& job, std::optional<job_record> const& record);
    /// Returns what explain_launch_failure() says about a job that the scheduler knows.
    std::string explain_failure(queued_job const& job);
    /// Notes that the job has ended: who writes to its files is asked again.
    void note_end(std::string const& shown);

  private:
    job_paths const& ask_paths(job_number const& job);
    std::string const& cluster();
    std::optional<job_record> other_clusters_place();
    void find_paths(job_number const& job, job_files& files);
    void drop_other_clusters(job_number const& job, std::optional<job_record> const& record, job_files& files);
    void find_run_folders(job_number const& job, job_files& files);
    std::optional<shared_file> find_sharer(job_number const& job, std::string const& path);

    /// Holds what is known about the writers of a file without the job's number in its name.
    struct looked_at {
        std::uintmax_t size = 0;  ///< it becomes smaller when another job begins it
        bool is_known = false;
        std::chrono::steady_clock::time_point again_at{};
        std::chrono::seconds wait{0};  ///< until then
        std::optional<shared_file> found;
    };
    std::optional<queue_kind> kind_;
    environment const& variables_;
    std::optional<std::string> cluster_;                                ///< as find_cluster() returns it
    std::map<std::string, job_paths> asked_;                            ///< by the number as it is shown
    std::map<std::string, std::vector<started_run>> found_runs_;        ///< by their jobs' numbers
    std::chrono::steady_clock::time_point search_again_at_{};           ///< for found_runs_
    std::map<std::pair<std::string, std::string>, looked_at> sharers_;  ///< by the number as it is shown and the path
};

}  // namespace muster
