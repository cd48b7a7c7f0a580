// Runs a job: finds its nodes, maps its ranks, and starts them from this process or through an engine.
#pragma once

#include "base/environment.hpp"
#include "launch/run/guardian.hpp"
#include "launch/settings/part_functions.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Runs the job, or one generation of it, and returns muster's exit code; leaves the guardian an order if another generation
/// follows. Runs in the launcher process, below the guardian. Throws errors that occur before anything is started.
int run_job(run_options const& options, environment const& inherited, launcher_start const& start, part_functions const& parts);

}  // namespace muster
