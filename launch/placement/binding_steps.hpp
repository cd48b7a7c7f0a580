// The steps of bind_ranks.
#pragma once

#include <string_view>
#include <vector>

#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/placement_request.hpp"

namespace muster {

/// A core that ranks may get.
struct usable_core {
    cpuset cpus;     ///< the part that a rank gets
    cpuset threads;  ///< all its allowed hardware threads
    int numa = 0;
    int package = 0;
};

/// assign_gpus.cpp assigns the device, with the reason for sharing it, then the devices that each rank's program sees, and last
/// the nearest NIC.
void assign_gpus(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks);
void assign_visible(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks);
void assign_nics(topology const& machine, std::vector<binding>& ranks);
/// assign_cores.cpp
std::vector<usable_core> usable_cores(topology const& machine, placement_request const& wanted);
void assign_cores(topology const& machine, placement_request const& wanted, std::vector<binding>& ranks);

/// Adds `text` to the reasons for a rank's place.
void explain(binding& rank, std::string_view text);

}  // namespace muster
