// The commands about jobs: each takes the words behind its name and returns the exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/commands/commands.hpp"

namespace muster {

// Each throws errc::usage and errc::config for what the user can change, errc::unavailable where no scheduler answers.

/// Checks a job, writes its script, submits it and keeps a record; "job ID" on standard output.
int submit_command(std::vector<std::string> const& args, environment const& variables);
/// Asks for nodes and becomes salloc or qsub -I.
int alloc_command(std::vector<std::string> const& args, environment const& variables);
/// Lists the user's own jobs that wait or run.
int jobs_command(std::vector<std::string> const& args, environment const& variables);
/// Shows one job: asked for, placed, its files, its runs.
int show_command(std::vector<std::string> const& args, environment const& variables);
/// Follows jobs to their end, and returns the first code that is not 0 (see watch_code).
int watch_command(std::vector<std::string> const& args, environment const& variables);
/// Prints what a job's script and its ranks have written.
int logs_command(std::vector<std::string> const& args, environment const& variables);
/// Runs again what a run folder has the record of, or submits its job again.
int rerun_command(std::vector<std::string> const& args, environment const& variables);
/// Writes a job file, a training script and a job script into a folder; leaves files that are there.
int init_command(std::vector<std::string> const& args, environment const& variables);
/// Ends jobs, and says what their states were. Returns 1 if one of them could not be ended.
int cancel_command(std::vector<std::string> const& args, environment const& variables);

// The table of the part's commands: these, `muster script` and `muster site`.

std::span<command_function const> job_commands() noexcept;

}  // namespace muster
