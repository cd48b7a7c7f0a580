// Discovers the topology of this machine.
#pragma once

#include <string>
#include <string_view>

#include "base/cpuset.hpp"
#include "base/environment.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

/// Describes this machine: cores within `allowed` by sysfs, or by hwloc if sysfs says too little or `variables` contains one of
/// hwloc's; GPUs by NVML or else sysfs, within what `variables` leave visible (visible_gpus); NICs by sysfs. If no driver shows a
/// GPU but this process is in a scheduler's job with GPUs, it takes these (scheduler_gpus). Takes about 1 ms without GPUs. Throws
/// library_error if hwloc fails, errc::placement if a variable names a GPU that does not exist. Sets `kept`, if given, to a
/// handle of hwloc's knowledge, with caches, for load_here.
topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables,
                           hwloc_handle* kept = nullptr);

// GPUs given on the command line, for another machine than this one (muster plan --topology FILE --gpus SPEC).

/// Returns `machine` with the GPUs of `spec` instead: "4", this number at unknown places; "numa:3,2,1,0", one on each of these
/// NUMA nodes; "cpus:24-31,56-63/0-7,32-39", one next to each of these lists of hardware threads; "none". Pure. Throws
/// parse_error (errc::usage) with a caret, also for a NUMA node or CPUs that the machine does not have.
topology with_gpus(topology machine, std::string_view spec);

// Reads the topology of a machine from an hwloc XML file.

/// Returns the machine of an hwloc XML file (lstopo FILE.xml), with all its cores allowed, and the GPUs and NICs among its PCI
/// devices. A child of this process reads the file first, since hwloc may crash on a damaged one; call it from one thread only.
/// Throws errc::not_found, errc::invalid_data.
topology load_topology(std::string const& xml_path);
/// Does the same with the text of such a file, which errors call `name`.
topology read_topology(std::string const& xml, std::string const& name);

}  // namespace muster
