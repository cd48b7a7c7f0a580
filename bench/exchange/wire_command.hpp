// `muster-bench wire`: measures what f16 and bf16 on the wire gain.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const wire_row;

/// Runs as a rank, and prints on rank 0. Collective over the ranks that were started together. Returns the exit code; throws
/// errc::usage, comm_error.
int wire_command(given_options const& given, environment const& variables);

}  // namespace muster
