// A run over several nodes, or on another one than this: an engine starts the shims, we supervise.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/placement/mapping.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Chooses the engine, starts the ranks through it where `map` says, and supervises them; returns muster's exit code. With
/// --dry-run or --print-env prints and starts nothing. Runs in the launcher process, below the guardian. Throws errors that came
/// before anything was started.
int run_on_engine(run_options const& options, environment const& inherited, scheduler_sources const& sources,
                  allocation const& given, mapping const& map, std::string const& session_dir, int guardian_fd);

/// What an engine is told of this run, before its ranks or probes are. Files for it go into `scratch_dir`. There may be no
/// program in `options`.
engine_job describe_engine_job(run_options const& options, environment const& inherited, allocation const& given,
                               mapping const& map, std::string const& scratch_dir);

/// Writes the files of the engine's command. Throws errc::io.
void write_files(engine_command const& command);

/// The launcher's variables as ranks get them: nothing of an outer launcher, and -x.
environment ranks_variables(run_options const& options, environment const& inherited);

/// From this process' folder, without dots. Throws errc::not_found.
std::string absolute_path(std::string const& wanted);

}  // namespace muster
