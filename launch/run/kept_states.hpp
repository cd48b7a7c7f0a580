// Makes the states that ranks keep ready on the nodes of the next generation.
#pragma once

#include "launch/keep/state_holder.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Makes the states that ranks keep, if any, ready on their nodes, and sets where they are (`run.kept_files`). `everywhere`: the
/// run's nodes, including idle ones; `elsewhere`: at least one is another node than this. Throws errc::unavailable.
void place_kept_states(run_context& run, allocation const& everywhere, bool elsewhere, state_holder& holder);

}  // namespace muster
