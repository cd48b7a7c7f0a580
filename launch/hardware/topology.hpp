// What one node consists of, as far as placing ranks is concerned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.hpp"
#include "base/environment.hpp"
#include "launch/hardware/gpu.hpp"

namespace muster {

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
    std::string gpu_note;  ///< why there are no GPUs, or where they were read from
    int gpus_in_node = 0;  ///< GPUs (and slices) that are here; `gpus` may be fewer
    cpuset allowed() const;
    bool operator==(topology const&) const = default;
};

/// This machine: cores by hwloc within `allowed`, GPUs by NVML or else sysfs, within what `variables` leave visible
/// (visible_gpus), NICs by sysfs. Where no driver shows a GPU but this process is in a scheduler's job that says it has some,
/// these (scheduler_gpus). Takes about 1 ms without GPUs. Throws library_error if hwloc fails, errc::placement if a variable
/// names what is not there.
topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables);

/// The machine of an hwloc XML file (lstopo FILE.xml), with all its cores allowed, and the GPUs and NICs among its PCI devices.
/// A child of this process tries the file first, since hwloc may die of one that is damaged; call from one thread only. Throws
/// errc::not_found, errc::invalid_data.
topology load_topology(std::string const& xml_path);
/// The same of such a file's text, called `name` in errors.
topology read_topology(std::string const& xml, std::string const& name);

}  // namespace muster
