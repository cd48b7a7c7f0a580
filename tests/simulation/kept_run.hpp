// One simulated run whose states are kept over restarts: the real machines of keepers, their leader and the restarts, with simulated memory, processes, network and clock.
#pragma once

#include <string>
#include <vector>

#include "kept_schedule.hpp"
#include "simulated_run.hpp"

namespace muster::simulation {

/// It writes a line for each event to `story`, unless that is null.
outcome simulate(kept_schedule const& of, std::vector<std::string>* story = nullptr);

}  // namespace muster::simulation
