// An owner of an hwloc topology, and functions that read cores from it.
#pragma once

#include <hwloc.h>

#include <vector>

#include "base/unique_handle.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

struct hwloc_traits {
    using type = hwloc_topology_t;
    static type null() noexcept { return nullptr; }
    static void close(type t) noexcept { ::hwloc_topology_destroy(t); }
};
using hwloc_handle = unique_handle<hwloc_traits>;

enum class hwloc_depth {
    cores,    ///< cores, packages and NUMA nodes
    caches,   ///< also data caches, from which MPI libraries learn how near ranks are
    devices,  ///< everything
};

/// Makes a topology that is not yet loaded. Throws library_error.
hwloc_handle make_hwloc(hwloc_depth depth);

/// Reads this machine, unless `t` is loaded. Throws library_error.
void load_here(hwloc_topology_t t);

/// Returns the cores within `allowed`, or all. An object without a core counts as one.
std::vector<core> read_cores(hwloc_topology_t t, cpuset const* allowed);

cpuset cpus_of(hwloc_obj_t object);
/// Returns the first NUMA node of an object that belongs to the machine's tree of CPUs; 0 if it has none.
int first_numa(hwloc_topology_t t, hwloc_obj_t object);

}  // namespace muster
