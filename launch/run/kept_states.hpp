// Makes the states that ranks keep ready on the nodes of the next generation.
#pragma once

#include "launch/keep/state_holder.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Makes the states that ranks keep, if any, ready on their nodes, and returns where they are. `everywhere`: the run's nodes,
/// including idle ones; `elsewhere`: at least one is another node than this. Throws errc::unavailable.
kept_places place_kept_states(run_plan const& run, allocation const& everywhere, bool elsewhere, state_holder& holder);

}  // namespace muster
