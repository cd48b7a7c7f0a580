// The GPUs of this node, by the NVML library if there is one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/topology.hpp"

namespace muster {

struct gpu_list {
    std::vector<gpu> gpus;  ///< in PCI order
    std::string note;       ///< "NVML 12.2, driver 535.54" or what was looked for and not found
};

/// Asks NVML, which is loaded at run time. No library, no driver or no device is no error: the list is empty and the note says
/// why.
gpu_list read_gpus();

/// Those of `all` that a CUDA_VISIBLE_DEVICES value names, in its order: indices ("0,2"), UUIDs or unique prefixes ("GPU-3f2a");
/// as CUDA does, an empty value means none, and so do -1, NoDevFiles and none. Throws errc::placement on a device that is not
/// there or a form that is not understood (MIG).
std::vector<gpu> select_gpus(std::vector<gpu> const& all, std::string_view visible_devices);

}  // namespace muster
