// The generations of a run as the launcher of each places it, and what it leaves for the next.
#pragma once

#include <string>
#include <vector>

#include "launch/elastic/run_life.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Takes the hosts that the run has lost out of the allocation.
void leave_out_lost(allocation& given, run_life const& life);

/// Maps the run's present generation. In the first one sets the spares aside, and writes down the slots and members of the run; later puts the
/// nodes in the generation's order and leaves out those that it does not use. Returns the plan with `given`, `map`, `waiting`, `life` and `options.place` as they are then. Throws as map_ranks(), and
/// errc::placement where too little is left.
run_plan map_generation(run_plan run);

/// What follows a generation that has ended.
struct generation_follow_up {
    bool again = false;
    duration delay{0};
    run_life life = {};                     ///< of the next one
    std::vector<generation_end> ends = {};  ///< of all so far
    std::string why_not = {};               ///< why none follows; empty: there is nothing to say
};

/// Decides that, and tells the user. `began_s`: when this launcher began, by seconds_now().
generation_follow_up follow_up(run_context const& run, int code, double began_s);

}  // namespace muster
