// `muster doctor`: examines this machine and the job, and prints what is missing and what to do.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/commands/finding.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// Looks at what muster and the programs under it need on this machine, at the job and at what can start ranks on its nodes.
/// Starts nothing but `mpirun --version` and its like.
std::vector<finding> examine(run_options const& options, environment const& variables);

/// Prints the findings, with --allocation those of every node too; exit code 0, or 1 if something is missing without which ranks
/// cannot run here, or a node is unfit for them.
int doctor_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
