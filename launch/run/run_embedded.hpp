// Runs ranks that are all on this node, as children of this process, with its own PMIx server and PMI-1 wire.
#pragma once

#include "launch/hardware/hwloc_handle.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/run/prepare_run.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Starts and supervises the ranks; returns muster's exit code. With --dry-run or --print-env prints and starts nothing. Runs in
/// the launcher process, below the guardian. `hwloc` is what discover_here kept; ranks' PMIx libraries get it. Throws errors that
/// occur before any rank is started.
int run_embedded(run_context const& run, run_preparation const& prepared, local_placement const& where,
                 hwloc_handle const& hwloc);

}  // namespace muster
