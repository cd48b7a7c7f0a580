// `muster-bench scale`: runs a program on several numbers of ranks and compares them.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const scale_row;

/// Returns the exit code: 0; 1 where a run failed, an expectation is broken or the baseline was better; 2 where --strict refuses;
/// 128+n after signal n. Throws muster::error.
int scale_command(given_options const& given, environment const& variables, std::string const& line);

}  // namespace muster
