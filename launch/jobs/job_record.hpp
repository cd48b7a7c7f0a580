// The record of a submitted job, from which later commands learn where its script, its output and its run folder are.
#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "jobscripts/each.hpp"

namespace muster {

/// A file `muster.job/1` in $XDG_STATE_HOME (or ~/.local/state) /muster/jobs, named SCHEDULER-ID.json, with mode 0600. It is
/// named slurm-ID@CLUSTER.json if another cluster has a job of that number, too.
struct job_record {
    std::string id;
    std::string scheduler;  ///< "slurm", "pbs" or "flux"
    std::string cluster;    ///< Slurm's, whose clusters each number their jobs from 1; empty: not known
    std::string site;
    std::string name;
    std::string submitted_at;  ///< local time with its offset
    std::string submitted_on;  ///< the host
    std::string version;       ///< muster's
    std::string working_dir;
    std::string script;      ///< path
    std::string output;      ///< path; empty: the scheduler chooses it
    std::string run_folder;  ///< %j stands for the job's number
    std::string asked;       ///< "2 nodes, 4 ranks on each, 1:00:00"
    std::vector<each_parameter> each;  ///< for an array that sweeps a program's options
    std::vector<std::string> command;
    std::vector<std::string> arguments;  ///< those of muster submit
    bool operator==(job_record const&) const = default;
};

std::string to_json(job_record const& record);
/// Throws errc::config naming `origin` for a text that is no such record.
job_record parse_job_record(std::string_view text, std::string_view origin);

/// Returns why it could not be written, "" if it was: the job is queued in any case.
std::string write_job_record(job_record const& record, environment const& variables);

/// Returns the record of a job, of a task's array ("12_3", "12[3].server"), or of PBS' job whose server is left out ("12").
/// Returns nothing if muster has no readable record of it, or only that of another cluster's job. `cluster` returns the name of
/// this cluster ("": not known) and is called only for a record with one. Throws errc::usage if it is not known and several
/// clusters have such a job.
std::optional<job_record> find_job_record(std::string const& id, environment const& variables,
                                          std::function<std::string()> const& cluster);
/// Does the same; asks the scheduler for the cluster.
std::optional<job_record> find_job_record(std::string const& id, environment const& variables);

/// Returns the records of jobs submitted at `since` or later, the latest first. Skips records that cannot be read.
std::vector<job_record> recent_job_records(environment const& variables, std::time_t since);

/// Returns, after find_job_record() has found nothing, which other cluster has such a job: "; muster's record of a job 12 is of
/// the cluster alpha: ask there"; else "".
std::string where_recorded(std::string const& id, environment const& variables);

/// Returns `asked`, with its record's server if PBS' server is left out: the number that %j stands for. Pure.
std::string full_job_number(std::string const& asked, std::optional<job_record> const& record);

}  // namespace muster
