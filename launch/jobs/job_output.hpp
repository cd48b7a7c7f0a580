// Helpers of the commands about jobs: read numbers from their command lines, and find the files of a job.
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

/// The words, each checked; a SLUID becomes the number that Slurm tells. Throws errc::usage for none, and for one that is no number of a job.
std::vector<std::string> job_numbers(std::vector<std::string> const& words, std::string_view command,
                                     environment const& variables);

nlohmann::ordered_json json_of(queued_job const& job);

/// What these jobs, an array's tasks or one job, were when they were asked about: "RUNNING"; "2 RUNNING (114_0, 114_2), 1 CANCELLED (114_1)". Pure.
std::string list_states(std::vector<queued_job> const& jobs);

/// A file or run folder that a job named and another job writes to.
struct shared_file {
    std::string path;
    bool is_others = false;  ///< what it holds is the other job's: nothing in it is shown
    std::string why;         ///< for people; empty: the job has not begun it yet
};

/// The files of a job, as far as they are known.
struct job_files {
    std::string output;                    ///< the scheduler's; empty: not known
    std::vector<std::string> run_folders;  ///< those that are there, in the order of the runs
    std::string first_folder;              ///< where the first run's folder will be; empty: not known
    std::string errors;                    ///< the scheduler's of standard error, where that is another; empty: not known
    std::vector<shared_file> shared;       ///< those that are others' are in none of the above
    std::map<std::string, std::string>
        run_names;  ///< by folder, where runs of the job have folders of different names: by them their lines are told apart
};

/// Whether `word` names the folder of a run (with run.json in it) and no job. Its runs, of several generations too, are files of a job without a number.
bool is_run_folder(std::string const& word);
job_files files_of_run(std::string const& folder);

/// A run whose record says when it began.
struct started_run {
    std::string started_at, folder;
};

/// The exit code in run.json of a run that has ended; nothing otherwise.
std::optional<int> read_run_exit(std::string const& run_folder);

/// Whether the run of that folder, whose number is its launcher's process id, was made on this host by a process that is gone.
bool was_killed_here(std::string const& run_folder, std::string const& number);

/// Of a run that has not recorded its end: the process that led it, "process 4711 of node1", where that is gone; nothing where it lives, or cannot be seen from this host.
std::optional<std::string> find_gone_process(std::string const& run_folder);

/// That of the last of the job's runs.
std::optional<int> last_run_exit(job_files const& files);

/// Whether the script of a chain's job says, in what it wrote, that an earlier job had ended the work: it has no run, and its code is 0.
bool had_nothing_to_do(job_files const& files);

/// A job, or a task of an array, by its number as it is shown ("12_3") and as %j stands for it ("15"). Those of PBS are the same.
struct job_number {
    std::string shown, raw;
};

/// The tasks of an array ("12[].server", "12") that have run folders, or in this folder files of their output, by their index; of a task that is asked for
/// by its index ("12_3") itself; none for any other job.
std::vector<job_number> list_tasks(std::string const& asked, std::optional<job_record> const& record);

/// The job `asked`, or the tasks of that array that have begun, by their index: those among `jobs` (the scheduler's answer, in which other jobs do not
/// count), and those that it has forgotten.
std::vector<job_number> list_parts(std::vector<queued_job> const& jobs, std::string const& asked,
                                   std::optional<job_record> const& record);

/// By muster's record of the job; without one, in muster-runs of this folder. `asked` is the number that %j stands for; PBS' server may be left out.
job_files find_job_files(std::string const& asked, std::optional<job_record> const& record);

/// The record of a job, with the folder that --output-dir names. Without a record that folder is all there is in it.
std::optional<job_record> find_job_record(std::string const& id, settings_result const& given, environment const& variables);

/// The same, and of a job that muster has not submitted the files that the scheduler knows, which is asked once about each, and run folders of other
/// names in this folder, or one below it.
class job_file_finder {
  public:
    /// `kind`: nothing where there is no scheduler. `variables` must outlive it.
    job_file_finder(std::optional<queue_kind> kind, environment const& variables) : kind_(kind), variables_(variables) {}
    job_files find(job_number const& job, std::optional<job_record> const& record);
    /// See explain_launch_failure(); of a job that the scheduler knows.
    std::string explain_failure(queued_job const& job);
    /// The job has ended: who writes to its files is asked again.
    void note_end(std::string const& shown);

  private:
    job_paths const& ask_paths(job_number const& job);
    std::string const& cluster();
    std::optional<job_record> other_clusters_place();
    void find_paths(job_number const& job, job_files& files);
    void drop_other_clusters(job_number const& job, std::optional<job_record> const& record, job_files& files);
    void find_run_folders(job_number const& job, job_files& files);
    std::optional<shared_file> find_sharer(job_number const& job, std::string const& path);

    /// Who writes to a file without the job's number in its name.
    struct looked_at {
        std::uintmax_t size = 0;  ///< it becomes smaller when another job begins it
        bool is_known = false;
        std::chrono::steady_clock::time_point again_at{};
        std::chrono::seconds wait{0};  ///< before it
        std::optional<shared_file> found;
    };
    std::optional<queue_kind> kind_;
    environment const& variables_;
    std::optional<std::string> cluster_;                                ///< as find_cluster() tells
    std::map<std::string, job_paths> asked_;                            ///< by the number as it is shown
    std::map<std::string, std::vector<started_run>> found_runs_;        ///< by their jobs' numbers
    std::chrono::steady_clock::time_point search_again_at_{};           ///< for them
    std::map<std::pair<std::string, std::string>, looked_at> sharers_;  ///< by the number as it is shown and the path
};

}  // namespace muster
