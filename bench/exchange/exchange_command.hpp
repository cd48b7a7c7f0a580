// `muster-bench exchange`: what negotiation and fusion cost, and gain.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Runs as one of the ranks that `muster run` started; rank 0 prints a table or, with --json, JSON, on standard output. Every
/// result is checked while it is timed. Returns an exit code, 1 if one was wrong; throws muster::error.
int exchange_bench(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
