// The part keep, as the core calls it.
#pragma once

#include "launch/settings/part_functions.hpp"

namespace muster {

/// Adds the holder of the states that ranks keep, and the command that runs on each node.
void add_keep(part_functions& to);

}  // namespace muster
