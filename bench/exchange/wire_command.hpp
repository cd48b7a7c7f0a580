// `muster-bench wire`: measures what f16 and bf16 on the wire gain.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Runs as a rank, and prints on rank 0. Collective over the ranks that were started together. Returns the exit code; throws
/// errc::usage, comm_error.
int wire_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
