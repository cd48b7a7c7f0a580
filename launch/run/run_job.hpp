// Runs a job: finds its nodes, maps its ranks, and starts them from this process or by an engine.
#pragma once

#include "base/environment.hpp"
#include "launch/run/guardian.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Runs the job, or one generation of it, and returns muster's exit code; where another generation is to follow, its guardian is left
/// the order for it. Runs in the launcher process, below the guardian; throws errors that came before anything was started.
int run_job(run_options const& options, environment const& inherited, launcher_start const& start);

}  // namespace muster
