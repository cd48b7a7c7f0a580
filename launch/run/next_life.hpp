// The generations of a run: how each launcher places its own, and what it leaves for the next.
#pragma once

#include <string>
#include <vector>

#include "launch/elastic/run_life.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Removes the hosts that the run has lost from the allocation.
void leave_out_lost(allocation& given, run_life const& life);

/// Maps the run's present generation. In the first one it sets the spares aside and records the run's slots and members; later it
/// puts the nodes in the generation's order and leaves out unused ones. Returns the plan with the new `given`, `map`, `waiting`,
/// `life` and `options.place`. Throws as map_ranks(), and errc::placement if too little is left.
run_plan map_generation(run_plan run);

/// Says what follows a generation that has ended.
struct generation_follow_up {
    bool again = false;
    duration delay{0};
    run_life life = {};                     ///< the next generation's
    std::vector<generation_end> ends = {};  ///< those of all generations so far
    std::string why_not = {};               ///< why none follows; empty: there is nothing to say
};

/// Decides what follows, and tells the user. `began_s`: when this launcher began, by seconds_now().
generation_follow_up follow_up(run_context const& run, int code, double began_s);

}  // namespace muster
