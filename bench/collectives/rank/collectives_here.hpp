// The measurement of collectives and messages among the ranks of a job, of which this process is one.
#pragma once

#include <string>

#include "base/command/given_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// `muster-bench collectives` under muster run. Collective; prints on rank 0. Returns the exit code; throws errc::usage, comm_error.
int collectives_here(given_options const& given, identity const& who, std::string const& line);

}  // namespace muster
