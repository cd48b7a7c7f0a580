// Runs ranks on several nodes, or on one other node: an engine starts the shims, and this process supervises them.
#pragma once

#include "launch/run/prepare_run.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Chooses the engine, starts the ranks through it as `run.map` says, and supervises them; returns muster's exit code. With
/// --dry-run or --print-env prints and starts nothing. Runs in the launcher process, below the guardian. Throws errors that occur
/// before anything is started.
int run_on_engine(run_context const& run, run_preparation const& prepared);

}  // namespace muster
