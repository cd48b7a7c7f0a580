// `muster-bench exchange`: measures the exchange beside one MPI_Allreduce a tensor.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Runs as one of the ranks that `muster run` started; rank 0 prints a table or, with --json, JSON, on standard output. Every
/// result is checked while it is timed. Returns an exit code, 1 if one was wrong; throws muster::error.
int exchange_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
