// `muster-bench predict`: a measured study and a platform in, simulated times of more ranks out, each with its known error.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const predict_row;

/// Returns the exit code; throws muster::error.
int predict_command(given_options const& given, environment const& variables);

}  // namespace muster
