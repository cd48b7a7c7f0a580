// What one node consists of, as far as placing ranks is concerned.
#pragma once

#include <string>
#include <vector>

#include "launch/cpuset.hpp"

namespace muster {

/// One GPU (later also: one MIG slice). `index` is its place in PCI order: what CUDA calls it with CUDA_DEVICE_ORDER=PCI_BUS_ID.
struct gpu {
    int index = 0;
    std::string uuid;  ///< "GPU-…"
    std::string pci;   ///< "0000:07:00.0"
    std::string name;
    int numa = -1;  ///< -1: not known
    bool operator==(gpu const&) const = default;
};

/// A core and those of its hardware threads that may be used.
struct core {
    cpuset cpus;
    int numa = 0;
    int package = 0;
    bool operator==(core const&) const = default;
};

/// A network interface with a device behind it (no bridges, no veth, no loopback).
struct nic {
    std::string name;
    int numa = -1;
    bool operator==(nic const&) const = default;
};

/// A node. `cores` holds only what this process may use (cgroup, affinity), in order of package, NUMA node and number.
struct topology {
    std::string host;
    std::vector<core> cores;
    std::vector<gpu> gpus;
    std::vector<nic> nics;
    std::string gpu_note;  ///< why there are no GPUs, or where they were read from
    cpuset allowed() const;
    bool operator==(topology const&) const = default;
};

/// This machine: cores by hwloc within `allowed`, GPUs by NVML within `visible_devices` (the value of CUDA_VISIBLE_DEVICES, if
/// set), NICs by sysfs. Takes about 1 ms without GPUs. Throws library_error if hwloc fails, errc::placement if
/// CUDA_VISIBLE_DEVICES names what is not there.
topology discover_topology(std::string const& host, cpuset const& allowed, std::string const* visible_devices);

/// The machine of an hwloc XML file (lstopo FILE.xml), with all its cores allowed and no GPUs. Throws errc::not_found,
/// errc::invalid_data.
topology load_topology(std::string const& xml_path);

}  // namespace muster
