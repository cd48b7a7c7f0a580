// Discovers the topology of this machine.
#pragma once

#include <functional>
#include <string>

#include "base/cpuset.hpp"
#include "base/environment.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

/// This machine: cores by hwloc within `allowed`, GPUs by NVML or else sysfs, within what `variables` leave visible
/// (visible_gpus), NICs by sysfs. Where no driver shows a GPU but this process is in a scheduler's job that says it has some,
/// these (scheduler_gpus). Takes about 1 ms without GPUs. Throws library_error if hwloc fails, errc::placement if a variable
/// names what is not there. `kept`, if given, becomes what hwloc knows, with caches: loading it again would cost as much.
/// `meanwhile`, if given, is called while hwloc reads in a thread of its own; it must not change the environment of the process.
topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables,
                           hwloc_handle* kept = nullptr, std::function<void()> const& meanwhile = {});

}  // namespace muster
