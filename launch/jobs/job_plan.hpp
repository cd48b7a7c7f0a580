// The plan of a job to be submitted: its script, the scheduler's command and the places of its files.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/scripts/script_plan.hpp"

namespace muster {

/// The folder for files of jobs, below the folder of the submission, unless the user's settings name a folder for a run's output.
inline constexpr char const* runs_folder = "muster-runs";
inline constexpr char const* cluster_file = ".cluster";  ///< a file in it that names the cluster whose jobs' files lie there

struct job_plan {
    std::string site;
    std::string cluster;  ///< Slurm's; empty: not known
    script_request request;
    std::vector<std::string> notes;
    std::string script;               ///< its text
    std::string working_dir;          ///< absolute: the folder of the submission
    std::string files_folder;         ///< absolute: holds its script and the scheduler's output
    std::string run_folder;           ///< absolute; %j stands for the job's number
    std::vector<std::string> submit;  ///< the scheduler's command, which the script's path completes
    bool hold = false;

    /// Returns the path of the scheduler's output of a job; empty if the scheduler chooses it.
    std::string output_of(std::string const& id) const;
    bool operator==(job_plan const&) const = default;
};

/// Plans a job from what was given to `muster submit` or `alloc`. Throws errc::usage and errc::config, as plan_script does;
/// errc::unavailable for a site without a scheduler that takes jobs.
job_plan plan_submission(settings_result const& given, environment const& variables);

/// Throws errc::unavailable, which says where to submit, if the scheduler's program (sbatch, qsub, salloc) is not on PATH.
void refuse_missing(std::string const& program, std::string const& site, environment const& variables);

/// Returns "2 nodes, 4 ranks on each, 1:00:00, queue debug". Pure.
std::string describe(script_request const& request);

}  // namespace muster
