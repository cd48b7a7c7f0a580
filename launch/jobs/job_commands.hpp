// The commands about jobs: each takes the words after its name and returns the exit code.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/commands/commands.hpp"
#include "launch/settings/part_functions.hpp"

namespace muster {

// Each throws errc::usage and errc::config for what the user can change, and errc::unavailable if no scheduler answers.

/// Checks a job, writes its script, submits it and keeps a record; prints "job ID" on standard output.
int submit_command(std::vector<std::string> const& args, environment const& variables);
/// Asks for nodes and becomes salloc or qsub -I.
int alloc_command(std::vector<std::string> const& args, environment const& variables);
/// Lists the user's own jobs that wait or run.
int jobs_command(std::vector<std::string> const& args, environment const& variables);
/// Shows one job: what it asked for, where it was placed, its files and its runs.
int show_command(std::vector<std::string> const& args, environment const& variables);
/// Follows jobs to their end, and returns the first code that is not 0 (see watch_code).
int watch_command(std::vector<std::string> const& args, environment const& variables);
/// Shows what the ranks of a run do while it runs: on a terminal until it ends, else once.
int top_command(std::vector<std::string> const& args, environment const& variables);
/// Prints what a job's script and its ranks have written.
int logs_command(std::vector<std::string> const& args, environment const& variables);
/// Repeats the run that a run folder records, or submits its job again.
int rerun_command(std::vector<std::string> const& args, environment const& variables);
/// Writes a job file, a training script and a job script into a folder; leaves existing files as they are.
int init_command(std::vector<std::string> const& args, environment const& variables);
/// Cancels jobs and prints the states that they were in. Returns 1 if one of them could not be cancelled.
int cancel_command(std::vector<std::string> const& args, environment const& variables);

/// Adds the commands of the part jobs: these, `muster script` and `muster site`.
void add_jobs(part_functions& to);

}  // namespace muster
