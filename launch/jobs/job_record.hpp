// The record of a submitted job: tells later commands where its script, its output and its run folder are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// A file `muster.job/1` in $XDG_STATE_HOME (or ~/.local/state) /muster/jobs, named SCHEDULER-ID.json, with mode 0600.
struct job_record {
    std::string id;
    std::string scheduler;  ///< "slurm", "pbs" or "flux"
    std::string site;
    std::string name;
    std::string submitted_at;  ///< local time with its offset
    std::string submitted_on;  ///< the host
    std::string version;       ///< of muster
    std::string working_dir;
    std::string script;      ///< path
    std::string output;      ///< path; empty: the scheduler chooses it
    std::string run_folder;  ///< %j: the job's number
    std::string asked;       ///< "2 nodes, 4 ranks on each, 1:00:00"
    std::vector<std::string> command;
    std::vector<std::string> arguments;  ///< of muster submit
    bool operator==(job_record const&) const = default;
};

std::string to_json(job_record const& record);
/// Throws errc::config naming `origin` for what is no such record.
job_record parse_job_record(std::string_view text, std::string_view origin);

/// "" if neither variable is set.
std::string job_records_folder(environment const& variables);

/// Returns why it could not be written; "" if it was: the job is queued in any case.
std::string write_job_record(job_record const& record, environment const& variables);

/// The record of a job, of the array that a task ("12_3", "12[3].server") is of, or of PBS' job whose server is left out ("12"). Nothing if muster has
/// no record of it, or one that cannot be read.
std::optional<job_record> find_job_record(std::string const& id, environment const& variables);

/// `id` with the server of its record, if PBS' server is left out: the number that %j stands for. Pure.
std::string full_job_number(std::string const& asked, std::optional<job_record> const& record);

}  // namespace muster
