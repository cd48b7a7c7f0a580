// Describes a run to an engine.
#pragma once

#include <string>

#include "launch/engine/engine_job.hpp"
#include "launch/placement/mapping.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/wire/shim_directions.hpp"

namespace muster {

/// The job for an engine whose shims go where `map` says: the ranks' shims, or one probe a node. Files for the engine go into
/// `scratch_dir`. `run.options.command` may be empty. Throws errc::system.
engine_job describe_engine_job(run_context const& run, mapping const& map, std::string const& scratch_dir);

/// How the shims of that job, started by `engine`, are to find the launcher.
shim_directions_request directions_request(engine_job const& job, run_options const& options, std::string_view engine);

}  // namespace muster
