// `muster-bench loader`: measures the delivery of shuffled samples beside memcpy of the same bytes.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Measures on this process alone (no MPI), prints a table or, with --json, JSON, on standard output. Every byte delivered is
/// checked against the checksums of its samples. Returns an exit code; throws muster::error, errc::invalid_data if a checksum is
/// wrong.
int loader_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
