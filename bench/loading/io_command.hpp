// `muster-bench io`: compares reading and loading of a dataset file with pread, dd, cp, h5py and torch's DataLoader.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const io_row;

/// Measures on this process and its children (no MPI), prints a table or, with --json, JSON, on standard output. Returns an exit
/// code; throws muster::error.
int io_command(given_options const& given, environment const& variables);

}  // namespace muster
