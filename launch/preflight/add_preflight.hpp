// The part preflight, as the core calls it.
#pragma once

#include "launch/settings/part_functions.hpp"

namespace muster {

/// Adds the inspection of nodes, and the command that runs on each of them.
void add_preflight(part_functions& to);

}  // namespace muster
