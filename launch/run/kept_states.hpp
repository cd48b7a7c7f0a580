// The states that ranks keep, ready on the nodes of the generation that is to begin.
#pragma once

#include "launch/keep/state_holder.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Has the states that ranks keep, where any do, ready on their nodes, and returns where these are. `everywhere`: the nodes of the run, with those
/// that are idle; `elsewhere`: some are not this one. Throws errc::unavailable.
kept_places place_kept_states(run_plan const& run, allocation const& everywhere, bool elsewhere, state_holder& holder);

}  // namespace muster
