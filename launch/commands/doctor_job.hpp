// Examines, for muster doctor, the scheduler and the engines.
#pragma once

#include <optional>
#include <vector>

#include "base/environment.hpp"
#include "launch/commands/commands.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Examines which scheduler's job this is, which engines can start ranks on its nodes, and why others cannot. Runs the engines'
/// programs. Returns the GPUs that the job has on this node, if the scheduler says.
std::optional<int> examine_job(std::vector<finding>& all, run_options const& options, environment const& variables);

}  // namespace muster
