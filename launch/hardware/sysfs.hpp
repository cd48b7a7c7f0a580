// Reads the devices of a node as Linux shows them below /sys and /proc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/hardware/topology.hpp"

namespace muster {

/// Says where a PCI device sits, according to the kernel.
struct device_place {
    int numa = -1;
    cpuset near;                        ///< empty: the kernel does not say
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool operator==(device_place const&) const = default;
};

/// Reads below `root`, "" for this machine; another folder can stand for another machine. Nothing here throws for missing or
/// malformed files: what they would say is then not known.
class sysfs {
  public:
    explicit sysfs(std::string root = "") : root_(std::move(root)) {}

    /// Returns the place of the device at this address ("0000:07:00.0").
    device_place place_of(std::string const& pci) const;

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
