// Discovers the topology of this machine.
#pragma once

#include <string>

#include "base/cpuset.hpp"
#include "base/environment.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

/// This machine: cores within `allowed` by sysfs, or by hwloc where that tells too little or `variables` has one of hwloc's, GPUs
/// by NVML or else sysfs, within what `variables` leave visible (visible_gpus), NICs by sysfs. Where no driver shows a GPU but
/// this process is in a scheduler's job that says it has some, these (scheduler_gpus). Takes about 1 ms without GPUs. Throws
/// library_error if hwloc fails, errc::placement if a variable names what is not there. `kept`, if given, becomes a handle for what
/// hwloc knows, with caches, for load_here.
topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables,
                           hwloc_handle* kept = nullptr);

}  // namespace muster
