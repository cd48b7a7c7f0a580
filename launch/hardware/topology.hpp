// The topology of a node: cores, GPUs and NICs, as far as placing ranks needs them.
#pragma once

#include <string>
#include <vector>

#include "base/cpuset.hpp"
#include "launch/hardware/gpu.hpp"

namespace muster {

/// A core and those of its hardware threads that may be used.
struct core {
    cpuset cpus;
    int numa = 0;
    int package = 0;
    bool operator==(core const&) const = default;
};

/// In order of package, NUMA node and number.
void put_in_order(std::vector<core>& cores);

/// A network interface with a device behind it (no bridges, no veth, no loopback).
struct nic {
    std::string name;
    int numa = -1;
    bool fabric = false;                ///< InfiniBand, RoCE or Slingshot: made for what ranks send each other
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool operator==(nic const&) const = default;
};

/// A node. `cores` holds only what this process may use (cgroup, affinity), in order of package, NUMA node and number.
struct topology {
    std::string host;
    std::vector<core> cores;
    std::vector<gpu> gpus;  ///< those this process may see, in the order of CUDA_VISIBLE_DEVICES if that says one
    std::vector<nic> nics;
    std::string gpu_note;    ///< why there are no GPUs, or where they were read from
    std::string gpu_detail;  ///< what the loader of libraries reported, for --verbose; mostly empty
    std::string gpus_hidden_by;  ///< the variable that leaves none visible; mostly empty
    int gpus_in_node = 0;    ///< GPUs (and slices) that are here; `gpus` may be fewer
    cpuset allowed() const;
    bool operator==(topology const&) const = default;
};

}  // namespace muster
