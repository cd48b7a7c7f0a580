// One simulated run: the real machines of the launcher and of the ranks, with a simulated network, processes and clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/membership/member_view.hpp"
#include "launch/elastic/membership.hpp"
#include "schedule.hpp"

namespace muster::simulation {

struct outcome {
    std::string broken = {};  ///< the invariant that does not hold, and where; empty: all hold
    double at_s = 0;
    int events = 0;
    int generations = 0;
    bool gave_up = false;
};

/// It writes a line for each event to `story`, unless that is null.
outcome simulate(schedule const& of, std::vector<std::string>* story = nullptr);

}  // namespace muster::simulation
