// The steps of bind_ranks.
#pragma once

#include <string_view>
#include <vector>

#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/placement_request.hpp"

namespace muster {

/// A core that ranks may have.
struct usable_core {
    cpuset cpus;     ///< what a rank gets of it
    cpuset threads;  ///< all its allowed hardware threads
    int numa = 0;
    int package = 0;
};

/// assign_gpus.cpp: device and why it is shared, then which devices each rank's program sees; at last the nearest NIC.
void assign_gpus(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks);
void assign_visible(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks);
void assign_nics(topology const& machine, std::vector<binding>& ranks);
/// assign_cores.cpp
std::vector<usable_core> usable_cores(topology const& machine, placement_request const& wanted);
void assign_cores(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks);

/// Adds `text` to why a rank is where it is.
void explain(binding& rank, std::string_view text);

}  // namespace muster
