// Reads the devices of a node as Linux shows them below /sys and /proc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/hardware/topology.hpp"

namespace muster {

/// Reads below `root`, "" for this machine; another folder can stand for another machine. Nothing here throws for missing or
/// malformed files: what they would say is then not known.
class sysfs {
  public:
    explicit sysfs(std::string root = "") : root_(std::move(root)) {}

    /// Sets the place of the GPU at its PCI address: NUMA node, nearest CPUs and the path from the root complex.
    void set_place(gpu& g) const;

    /// Returns the GPUs whose driver runs and that this process may open, of one vendor (NVIDIA's before AMD's before Intel's),
    /// in PCI order; AMD's in the order of its driver, in which ROCR_VISIBLE_DEVICES counts. The note names GPUs that cannot be
    /// used. NVIDIA's UUIDs come from /proc/driver/nvidia, AMD's from the driver's topology (kfd); MIG slices are not visible
    /// here.
    gpu_list read_gpus() const;

    /// Returns the cores that contain CPUs of `allowed`, in order. Returns nothing if these files are incomplete, or this process
    /// may not use the memory of a NUMA node. Reads two small files for each core, while hwloc reads some thirty for each CPU.
    std::optional<std::vector<core>> read_cores(cpuset const& allowed) const;

    /// Returns network interfaces with a device, by name; for a bond's members the bond. Leaves out interfaces that are down,
    /// except those of InfiniBand and Slingshot, which work without an address.
    std::vector<nic> read_nics() const;

  private:
    std::string root_;
};

}  // namespace muster
