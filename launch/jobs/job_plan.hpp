// The plan of a job that is to be submitted: its script, the scheduler's command and the places of its files.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/scripts/script_plan.hpp"

namespace muster {

/// Where files of jobs go, unless the user's settings name a folder for a run's output: below the folder that it is submitted from.
inline constexpr char const* runs_folder = "muster-runs";
inline constexpr char const* cluster_file = ".cluster";  ///< in it: whose jobs' files lie there

struct job_plan {
    std::string site;
    std::string cluster;  ///< of Slurm; empty: not known
    script_request request;
    std::vector<std::string> notes;
    std::string script;               ///< its text
    std::string working_dir;          ///< absolute: the folder that it is submitted from
    std::string files_folder;         ///< absolute: its script and the scheduler's output
    std::string run_folder;           ///< absolute; %j: the job's number
    std::vector<std::string> submit;  ///< the scheduler's command, to which the script's path is to be added
    bool hold = false;

    /// The path of the scheduler's own output of a job; empty where the scheduler chooses it.
    std::string output_of(std::string const& id) const;
    bool operator==(job_plan const&) const = default;
};

/// From what was given to `muster submit` or `alloc`. Throws errc::usage and errc::config, as plan_script does; errc::unavailable for a
/// site without a scheduler that jobs can be submitted to.
job_plan plan_submission(settings_result const& given, environment const& variables);

/// Throws errc::unavailable, saying where to submit, if there is no such program of the scheduler's (sbatch, qsub, salloc) on PATH.
void refuse_missing(std::string const& program, std::string const& site, environment const& variables);

/// "2 nodes, 4 ranks on each, 1:00:00, queue debug". Pure.
std::string describe(script_request const& request);

}  // namespace muster
