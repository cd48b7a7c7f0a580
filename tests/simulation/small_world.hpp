// All orders of events of a small run.
#pragma once

#include <cstddef>
#include <string>

namespace muster::simulation {

/// Each order of messages, steps, looks and up to so many faults, for runs of so many ranks; counts the states. Returns 0 where all invariants hold.
int run_small_world(int ranks, int faults);
/// What does not hold there; empty: all does.
std::string find_in_small_world(int ranks, int faults, bool over_nodes, std::size_t& states);

}  // namespace muster::simulation
