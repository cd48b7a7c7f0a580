// `muster-bench collectives-here`: measures collectives and messages among the ranks of the job that it is started in.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const collectives_here_row;

/// Every rank of a job runs it; rank 0 prints. `line` is the command line, for the JSON. Returns the exit code: 1 if any result was
/// wrong.
int collectives_here_command(given_options const& given, environment const& variables, std::string const& line);

}  // namespace muster
