// The devices of a node as Linux shows them below /sys and /proc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/hardware/topology.hpp"

namespace muster {

/// What the kernel says about where a PCI device sits.
struct device_place {
    int numa = -1;
    cpuset near;                        ///< empty: not said
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool operator==(device_place const&) const = default;
};

/// Reads below `root`, "" for this machine, so that a folder can stand in for another one. Nothing here throws for files that are
/// not there or hold something else: what they would say is then not known.
class sysfs {
  public:
    explicit sysfs(std::string root = "") : root_(std::move(root)) {}

    /// Of the device at this address ("0000:07:00.0").
    device_place place_of(std::string const& pci) const;

    /// The GPUs whose driver runs and that this process may open, of one vendor (NVIDIA's before AMD's before Intel's), in PCI
    /// order; AMD's in the order of its driver, which ROCR_VISIBLE_DEVICES counts in. The note says what was seen but cannot be
    /// used. NVIDIA's UUIDs are from /proc/driver/nvidia, AMD's from the driver's topology (kfd); MIG slices are not seen here.
    gpu_list read_gpus() const;

    /// The cores that hold CPUs of `allowed`, in order. Nothing where these files do not tell all of it, or the memory of a NUMA
    /// node is kept from this process. Reads two small files a core, where hwloc reads some thirty a CPU.
    std::optional<std::vector<core>> read_cores(cpuset const& allowed) const;

    /// Network interfaces with a device behind them, by name; of a bond's members the bond. Interfaces that are down are left
    /// out, except those of InfiniBand and Slingshot, which work without an address.
    std::vector<nic> read_nics() const;

  private:
    std::string root_;
};

}  // namespace muster
