// Runs a job: finds its nodes, maps its ranks, and starts them from this process or by an engine.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Runs the job and returns muster's exit code. Runs in the launcher process, below the guardian; throws errors that came before
/// anything was started.
int run_job(run_options const& options, environment const& inherited, std::string const& session_dir, int guardian_fd);

}  // namespace muster
