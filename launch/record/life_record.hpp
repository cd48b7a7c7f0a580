// Records a program's lives over several jobs: tells each which one it is, and decides at its end what follows.
#pragma once

#include "launch/settings/run_context.hpp"

namespace muster {

/// Returns `run.life` with what it says about the program's earlier lives, which the first generation finds out. Records in
/// --lives-file that the present one begins, except with --dry-run and --print-env. Throws as open_output_file().
run_life begin_life(run_plan const& run);

/// Handles the end of a run with `code` after which no generation follows. Makes the file of --success-file if the code was 0
/// before any early signal; records the end in --lives-file; with --requeue-saved makes Slurm start the job again after the code
/// of --saved-code and after a lost node. Reports why nothing follows, if one might expect it. Throws as open_output_file().
void end_life(run_context const& run, int code);

}  // namespace muster
