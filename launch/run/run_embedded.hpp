// The engine for one node: our own PMIx server and PMI-1 wire, and the ranks as our children.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "launch/placement/local_placement.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Starts and supervises the ranks, all of them on this node; returns muster's exit code. Runs in the launcher process, below the
/// guardian. Throws errors that came before any rank was started.
int run_embedded(run_options const& options, environment const& inherited, local_placement const& where,
                 std::string const& session_dir, int guardian_fd);

}  // namespace muster
