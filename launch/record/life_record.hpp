// The record of a program's lives over several jobs: tells each which one it is, and decides at its end what follows.
#pragma once

#include "launch/settings/run_context.hpp"

namespace muster {

/// Returns `run.life` with what it says of the program's earlier lives, which the first generation finds out. Writes into --lives-file that the present one begins, except for --dry-run
/// and --print-env. Throws as open_output_file().
run_life begin_life(run_plan const& run);

/// The run has ended with `code`, and no generation follows. Makes the file of --success-file if that was 0 before any early signal; writes the end into
/// --lives-file; with --requeue-saved has Slurm start the job again after the code of --saved-code and after a lost node. Says why nothing follows, where one might expect it. Throws as open_output_file().
void end_life(run_context const& run, int code);

}  // namespace muster
