// A binding: the GPU, cores and NIC of a rank.
#pragma once

#include <optional>
#include <string>

#include "base/cpuset.hpp"
#include "launch/hardware/gpu.hpp"

namespace muster {

struct binding {
    std::optional<gpu> device;
    cpuset cores;                    ///< empty: not bound
    int numa = -1;                   ///< the NUMA node of those cores; -1 if several
    std::optional<std::string> nic;  ///< the network interface nearest to the GPU, or to the cores
    std::string why;
    std::string visible_devices;  ///< what the rank's CUDA_VISIBLE_DEVICES (or its vendor's variable) becomes; empty: as it is
    int device_index = 0;         ///< what its program calls its GPU, the others that it sees counted
    bool operator==(binding const&) const = default;
};

}  // namespace muster
