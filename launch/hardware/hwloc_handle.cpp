#include "launch/hardware/hwloc_handle.hpp"

#include <stdlib.h>

#include <cerrno>

#include "base/error.hpp"

namespace muster {

namespace {

int package_of(hwloc_topology_t t, hwloc_obj_t object) {
    hwloc_obj_t const package = ::hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, object);
    return package != nullptr ? static_cast<int>(package->os_index) : 0;
}

}  // namespace

hwloc_handle make_hwloc(hwloc_depth depth) {
    // hwloc's plugins (OpenCL, CUDA, GL, …) open driver libraries: 3 ms for information that is not needed here. hwloc takes the
    // plugins' folder only from the process' environment.
    ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);
    hwloc_topology_t raw = nullptr;
    if (::hwloc_topology_init(&raw) != 0) throw library_error("hwloc", "hwloc_topology_init", errno, "out of memory");
    hwloc_handle handle(raw);
    // This component moves the process from processor to processor to ask each for what the kernel also knows: it takes as long
    // as all the rest.
    ::hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    if (depth == hwloc_depth::devices) {
        // Keeps everything, since a device hangs below the smallest object that is next to it: a group, a cache.
        ::hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
        return handle;
    }
    ::hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (auto const type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PACKAGE})
        ::hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (depth == hwloc_depth::caches) ::hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
    return handle;
}

void load_here(hwloc_topology_t t) {
    // EBUSY: it is loaded.
    if (::hwloc_topology_load(t) != 0 && errno != EBUSY)
        throw library_error("hwloc", "hwloc_topology_load", errno, "cannot read this machine");
}

cpuset cpus_of(hwloc_obj_t object) {
    cpuset set;
    if (object->cpuset == nullptr) return set;
    for (int cpu = ::hwloc_bitmap_first(object->cpuset); cpu >= 0; cpu = ::hwloc_bitmap_next(object->cpuset, cpu))
        set.cpus.push_back(cpu);
    return set;
}

int first_numa(hwloc_topology_t t, hwloc_obj_t object) {
    int const numa = object->nodeset != nullptr ? ::hwloc_bitmap_first(object->nodeset) : -1;
    return numa >= 0 && ::hwloc_get_numanode_obj_by_os_index(t, static_cast<unsigned>(numa)) != nullptr ? numa : 0;
}

std::vector<core> read_cores(hwloc_topology_t t, cpuset const* allowed) {
    // A virtual machine may show no cores: then each logical CPU counts as one.
    int const cores = ::hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    auto const type = cores > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    std::vector<core> found;
    for (hwloc_obj_t o = nullptr; (o = ::hwloc_get_next_obj_by_type(t, type, o)) != nullptr;) {
        core c{cpus_of(o), first_numa(t, o), package_of(t, o)};
        if (allowed != nullptr) c.cpus = intersect(c.cpus, *allowed);
        if (!c.cpus.empty()) found.push_back(std::move(c));
    }
    put_in_order(found);
    return found;
}

}  // namespace muster
