// One job as the scheduler reports it, read from the output of squeue or qstat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// unknown: the scheduler does not answer.
enum class job_phase { waiting, running, ended, unknown };

struct queued_job {
    std::string id;      ///< "12", an array's task "12_3"; PBS: "12.pbs"; Flux: "f6tw1Mjm"
    std::string raw_id;  ///< what %j stands for: Slurm gives each task of an array its own number
    std::string name;
    std::string state;  ///< the scheduler's word: "RUNNING", "Q"
    job_phase phase = job_phase::waiting;
    std::string reason;  ///< why it waits or has ended, in the scheduler's words; empty: no reason
    std::string nodes;   ///< their number
    std::string used;    ///< time, as the scheduler writes it
    std::string limit;
    std::string start;          ///< when it started, or is expected to; empty: not known
    std::string owner;          ///< PBS: "user@host"
    std::optional<int> status;  ///< the exit code of an ended job, as a shell shows it
    bool operator==(queued_job const&) const = default;
};

/// The format for `squeue -h -O`: no field has a width, and the job's name, which may contain anything, comes last.
inline constexpr char const* squeue_format =
    "JobID:|,JobArrayID:|,State:|,exit_code:|,Reason:|,NumNodes:|,TimeUsed:|,TimeLimit:|,StartTime:|,Name:";

/// Returns the jobs of squeue's lines. Skips lines without the fields (a warning). Pure.
std::vector<queued_job> parse_squeue(std::string_view printed);

/// Returns the jobs that `qstat -f -F dsv` printed; with -t also the tasks of arrays. Throws parse_error naming qstat for any
/// other text. Pure.
std::vector<queued_job> parse_qstat(std::string_view printed);

/// Returns "12[].server" of "12[3].server", and "12[]" of "12[3]": the PBS array of a task; any other number as it is. Pure.
std::string pbs_array_of(std::string const& id);

/// Returns "5[].server" of "5.server": the number of an array as PBS writes it; a number with brackets as it is. Pure.
std::string as_pbs_array(std::string const& id);

/// Removes the rows of PBS arrays whose tasks have their own rows: an array's exit status is 0 whatever its tasks' are. Pure.
std::vector<queued_job> without_begun_arrays(std::vector<queued_job> jobs);

/// Sorts the tasks of each array by index; jobs keep their places. Pure.
void sort_tasks(std::vector<queued_job>& jobs);

/// Returns whether `asked` means `job`: the job itself, a task of that array (PBS brackets are optional), or the same job of PBS
/// without its server. Pure.
bool is_meant(queued_job const& job, std::string_view asked);

/// Returns the code that `muster watch` ends with: the job's own; 124 if it ran out of time, 143 if it was cancelled, 137 if it
/// ran out of memory, 125 if a node was lost or nothing is known. Pure.
int watch_code(queued_job const& job) noexcept;

/// Explains in words why a job waits: from "Resources", "QOSMaxJobsPerUserLimit" or "AssocGrpGRES", or from PBS' comment. Pure.
std::string explain_wait(queued_job const& job);

/// Returns why a job has ended that never started: "the job that it depends on did not end as it must
/// (DependencyNeverSatisfied)"; "" for any other job, and for one that a user cancelled. Pure.
std::string explain_no_start(queued_job const& job);

// The number of a job as schedulers print it and users write it.

/// Returns the job's number from what sbatch --parsable ("12", "12;cluster"), qsub ("12.server") or flux batch ("ƒ6tw1Mjm")
/// printed, with PBS' server and an ASCII f for Flux; also from "Submitted batch job 12". Ignores other lines, which a site's
/// wrapper prints. Returns nothing if no line is a number. Pure.
std::optional<std::string> parse_job_number(std::string_view printed);

/// Returns the cluster in what sbatch --parsable printed, which names the cluster of the job if it is not the default of this
/// folder's commands; "": it names no cluster. Pure.
std::string parse_job_cluster(std::string_view printed);

/// Returns whether a number is that of a job of Slurm's federation, which has it in all of its clusters. Pure.
bool is_federated(std::string_view id) noexcept;

/// Returns whether `name` is safe as a file's and a cluster's name and on a terminal: "5[2].pbshead" is, a slash is not. Pure.
bool is_file_name(std::string_view name);

/// Returns whether `word` has the form of Slurm's job ID that is unique among clusters (26.05: "s6XSM8FX04MW00"). Pure.
bool is_sluid(std::string_view word) noexcept;

/// Returns the number of the job with that SLUID ("12", for a task of an array "12_3") from what `scontrol -o show job` prints;
/// nothing if no record has it. Pure.
std::optional<std::string> number_of_sluid(std::string_view records, std::string_view sluid);

/// Returns whether `word` can name a job: "12", "12_3", "12.pbs", "12[3].pbs", "f6tw1Mjm". Pure.
bool is_job_number(std::string_view word) noexcept;

}  // namespace muster
