// One job as the scheduler reports it, read from what squeue or qstat prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

enum class job_phase { waiting, running, ended };

struct queued_job {
    std::string id;      ///< "12", of an array's task "12_3"; "12.pbs"; of Flux "f6tw1Mjm"
    std::string raw_id;  ///< the number that %j stands for: Slurm gives each task of an array its own number
    std::string name;
    std::string state;  ///< the scheduler's own word: "RUNNING", "Q"
    job_phase phase = job_phase::waiting;
    std::string reason;  ///< why it waits or has ended, in the scheduler's words; empty: none
    std::string nodes;   ///< their number
    std::string used;    ///< time, as the scheduler writes it
    std::string limit;
    std::string start;          ///< when it started, or is expected to; empty: not known
    std::string owner;          ///< PBS: "user@host"
    std::optional<int> status;  ///< of one that has ended: as a shell has it
    bool operator==(queued_job const&) const = default;
};

/// The format for `squeue -h -O`: no field has a width, and the job's name, which may hold anything, is the last.
inline constexpr char const* squeue_format =
    "JobID:|,JobArrayID:|,State:|,exit_code:|,Reason:|,NumNodes:|,TimeUsed:|,TimeLimit:|,StartTime:|,Name:";

/// Its lines. Those that do not have the fields (a warning) are passed over. Pure.
std::vector<queued_job> parse_squeue(std::string_view printed);

/// What `qstat -f -F dsv` printed, with -t the tasks of arrays too. Pure. Throws parse_error naming qstat for what is not that.
std::vector<queued_job> parse_qstat(std::string_view printed);

/// "12[].server" of "12[3].server", and "12[]" of "12[3]": the array of PBS that a task belongs to; any other number as it is. Pure.
std::string pbs_array_of(std::string const& id);

/// "5[].server" of "5.server": the number of an array as PBS writes it. One that has brackets stays as it is. Pure.
std::string as_pbs_array(std::string const& id);

/// Without the rows of PBS arrays whose tasks have their own rows: an array's exit status is 0 whatever its tasks' are. Pure.
std::vector<queued_job> without_begun_arrays(std::vector<queued_job> jobs);

/// The tasks of each array in the order of their indices; jobs stay as they are. Pure.
void sort_tasks(std::vector<queued_job>& jobs);

/// Whether `job` is meant by `asked`: the job itself, a task of that array (PBS brackets are optional), or the same
/// job of PBS without its server. Pure.
bool is_meant(queued_job const& job, std::string_view asked);

/// The code that `muster watch` ends with: the job's own; 124 if its time was up, 143 if it was cancelled, 137 if memory was full, 125 if a
/// node was lost or nothing is known. Pure.
int watch_code(queued_job const& job) noexcept;

/// Why a job waits, in words: of "Resources", "QOSMaxJobsPerUserLimit", "AssocGrpGRES", of PBS its comment. Pure.
std::string explain_wait(queued_job const& job);

/// Why a job has ended that never started: "the job that it depends on did not end as it must (DependencyNeverSatisfied)"; "": the job
/// is none of those, or was cancelled by a user. Pure.
std::string explain_no_start(queued_job const& job);

// The number of a job as schedulers print and users write it.

/// What sbatch --parsable ("12", "12;cluster"), qsub ("12.server") or flux batch ("ƒ6tw1Mjm") printed: the job's number, with PBS its
/// server, Flux's with an ASCII f; also "Submitted batch job 12". Other lines
/// are a site's own words. Nothing where no line is a number. Pure.
std::optional<std::string> parse_job_number(std::string_view printed);

/// The cluster in what sbatch --parsable printed, which names the one that has the job where it is not the one of this folder's commands; "": none. Pure.
std::string parse_job_cluster(std::string_view printed);

/// Whether a number is that of a job of Slurm's federation, which has it in all of its clusters. Pure.
bool is_federated(std::string_view id) noexcept;

/// Whether `name` can be a file's and a cluster's, and hides nothing on a terminal: "5[2].pbshead" can, a slash cannot. Pure.
bool is_file_name(std::string_view name);

/// Whether `word` has the form of Slurm's ID of a job that no other cluster has either (26.05: "s6XSM8FX04MW00"). Pure.
bool is_sluid(std::string_view word) noexcept;

/// The number of the job with that SLUID ("12", of a task of an array "12_3") by what `scontrol -o show job` prints; nothing where no record has it. Pure.
std::optional<std::string> number_of_sluid(std::string_view records, std::string_view sluid);

/// Whether `word` can name a job: "12", "12_3", "12.pbs", "12[3].pbs", "f6tw1Mjm". Pure.
bool is_job_number(std::string_view word) noexcept;

}  // namespace muster
