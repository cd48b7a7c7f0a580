// `muster-bench predict`: tells what a measured program is to be expected to do on more ranks of a modelled machine.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const predict_row;

/// Returns the exit code; throws muster::error.
int predict_command(given_options const& given, environment const& variables);

}  // namespace muster
