// Asks a scheduler for the files that it writes a job's output to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"

namespace muster {

/// The files of a job's standard output and standard error, which may be one file; empty: not known.
struct job_paths {
    std::string output, errors;
    bool operator==(job_paths const&) const = default;
};

/// Reads what `scontrol show job` (StdOut, StdErr) or `qstat -f` (Output_Path, Error_Path, Join_Path) printed. `id` is the job's
/// number, by which PBS names files in a folder. Pure.
job_paths parse_job_paths(queue_kind kind, std::string_view printed, std::string_view id);

/// Returns the files of a job that the scheduler knows. For a job that it has forgotten, looks in this folder for the usual
/// names: slurm-12.out, NAME.o12, NAME.e12.
job_paths find_job_paths(queue_kind kind, queued_job const& job, environment const& variables);

/// Returns what to do about a job that Slurm could not start on its node, which is mostly due to its output file: Slurm does not
/// report that the file's folder is missing. Returns "" for any other job.
std::string explain_launch_failure(queued_job const& job, job_paths const& paths);

/// Returns the numbers ("12_0") of an array's tasks with files slurm-12_0.out in this folder, in order.
std::vector<std::string> list_slurm_output_tasks(std::string const& array);

}  // namespace muster
