// The files that a scheduler writes a job's output to: asks it for their paths.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"

namespace muster {

/// The files of a job's standard output and standard error, which may be the same; empty: not known.
struct job_paths {
    std::string output, errors;
    bool operator==(job_paths const&) const = default;
};

/// From what `scontrol show job` (StdOut, StdErr) or `qstat -f` (Output_Path, Error_Path, Join_Path) printed. `id` is the job's number, by which PBS
/// names files in a folder. Pure.
job_paths parse_job_paths(queue_kind kind, std::string_view printed, std::string_view id);

/// Of a job that the scheduler knows; of one that it has forgotten the files of their usual names in this folder: slurm-12.out, NAME.o12, NAME.e12.
job_paths find_job_paths(queue_kind kind, queued_job const& job, environment const& variables);

/// What to do about a job that Slurm could not start on its node, which is mostly because of the file of its output: that says nothing of it where the
/// folder is missing. "" for any other job.
std::string explain_launch_failure(queued_job const& job, job_paths const& paths);

/// The numbers ("12_0") of an array's tasks by their files slurm-12_0.out in this folder, in order.
std::vector<std::string> list_slurm_output_tasks(std::string const& array);

}  // namespace muster
