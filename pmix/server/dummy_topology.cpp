#include "pmix/server/dummy_topology.hpp"

#include <cstdlib>

#include "base/error.hpp"

namespace muster::pmix {

unique_topology make_dummy_topology() {
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);  // plugins open driver libraries: 3 ms for nothing
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw library_error("hwloc", "hwloc_topology_init", -1, "failed");
    unique_topology topology(raw);
    if (hwloc_topology_set_synthetic(topology.get(), "pu:1") != 0 || hwloc_topology_load(topology.get()) != 0)
        throw library_error("hwloc", "hwloc_topology_set_synthetic", -1, "failed");
    return topology;
}

}  // namespace muster::pmix
