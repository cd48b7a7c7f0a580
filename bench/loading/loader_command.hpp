// `muster-bench loader`: compares the delivery of shuffled samples with memcpy of the same bytes.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const loader_row;

/// Measures on this process alone (no MPI), prints a table or, with --json, JSON, on standard output. Every byte delivered is
/// checked against the checksums of its samples. Returns an exit code; throws muster::error, errc::invalid_data if a checksum is
/// wrong.
int loader_command(given_options const& given, environment const& variables);

}  // namespace muster
