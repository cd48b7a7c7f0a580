#include "launch/topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/unique_handle.hpp"
#include "launch/nvml.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

struct hwloc_traits {
    using type = hwloc_topology_t;
    static type null() noexcept { return nullptr; }
    static void close(type t) noexcept { ::hwloc_topology_destroy(t); }
};
using hwloc_handle = unique_handle<hwloc_traits>;

hwloc_handle make_hwloc() {
    // hwloc's plugins (OpenCL, CUDA, GL, …) open driver libraries: 3 ms for things that are not asked for here.
    ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);
    hwloc_topology_t raw = nullptr;
    if (::hwloc_topology_init(&raw) != 0) throw library_error("hwloc", "hwloc_topology_init", errno, "out of memory");
    hwloc_handle handle(raw);
    ::hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (auto const type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PACKAGE})
        ::hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
    return handle;
}

int first_numa(hwloc_topology_t t, hwloc_obj_t object) {
    int const numa = object->nodeset != nullptr ? ::hwloc_bitmap_first(object->nodeset) : -1;
    return numa >= 0 && ::hwloc_get_numanode_obj_by_os_index(t, static_cast<unsigned>(numa)) != nullptr ? numa : 0;
}

int package_of(hwloc_topology_t t, hwloc_obj_t object) {
    hwloc_obj_t const package = ::hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, object);
    return package != nullptr ? static_cast<int>(package->os_index) : 0;
}

cpuset cpus_of(hwloc_obj_t object) {
    cpuset set;
    for (int cpu = ::hwloc_bitmap_first(object->cpuset); cpu >= 0; cpu = ::hwloc_bitmap_next(object->cpuset, cpu))
        set.cpus.push_back(cpu);
    return set;
}

std::vector<core> read_cores(hwloc_topology_t t, cpuset const* allowed) {
    // A virtual machine may show no cores at all: then each logical CPU is taken for one.
    int const cores = ::hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    auto const type = cores > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    std::vector<core> found;
    for (hwloc_obj_t o = nullptr; (o = ::hwloc_get_next_obj_by_type(t, type, o)) != nullptr;) {
        core c{cpus_of(o), first_numa(t, o), package_of(t, o)};
        if (allowed != nullptr) c.cpus = intersect(c.cpus, *allowed);
        if (!c.cpus.empty()) found.push_back(std::move(c));
    }
    auto const order = [](core const& c) { return std::tuple(c.package, c.numa, c.cpus.cpus.front()); };
    std::sort(found.begin(), found.end(), [&](core const& a, core const& b) { return order(a) < order(b); });
    return found;
}

int read_number(fs::path const& path, int otherwise) {
    std::ifstream file(path);
    int value = otherwise;
    file >> value;
    return file ? value : otherwise;
}

std::vector<nic> read_nics() {
    std::vector<nic> nics;
    std::error_code ignored;
    for (auto const& entry : fs::directory_iterator("/sys/class/net", ignored)) {
        if (!fs::exists(entry.path() / "device", ignored)) continue;
        nics.push_back({entry.path().filename(), read_number(entry.path() / "device/numa_node", -1)});
    }
    std::sort(nics.begin(), nics.end(), [](nic const& a, nic const& b) { return a.name < b.name; });
    return nics;
}

}  // namespace

cpuset topology::allowed() const {
    cpuset all;
    for (auto const& c : cores) all.add(c.cpus);
    return all;
}

topology discover_topology(std::string const& host, cpuset const& allowed, std::string const* visible_devices) {
    auto const handle = make_hwloc();
    if (::hwloc_topology_load(handle.get()) != 0)
        throw library_error("hwloc", "hwloc_topology_load", errno, "cannot read this machine");
    topology t;
    t.host = host;
    t.cores = read_cores(handle.get(), &allowed);
    t.nics = read_nics();
    auto const all_gpus = read_gpus();
    t.gpus = visible_devices != nullptr ? select_gpus(all_gpus.gpus, *visible_devices) : all_gpus.gpus;
    t.gpu_note = all_gpus.note;
    if (visible_devices != nullptr && !all_gpus.gpus.empty())
        t.gpu_note += fmt::format(", within CUDA_VISIBLE_DEVICES={}", *visible_devices);
    return t;
}

topology load_topology(std::string const& xml_path) {
    if (!fs::exists(xml_path))
        throw error(errc::not_found, fmt::format("no topology file {}; write one with: lstopo {}", xml_path, xml_path));
    auto const handle = make_hwloc();
    if (::hwloc_topology_set_xml(handle.get(), xml_path.c_str()) != 0 || ::hwloc_topology_load(handle.get()) != 0)
        throw error(errc::invalid_data,
                    fmt::format("{} is not a topology that hwloc {} can read; write one with: lstopo FILE.xml", xml_path,
                                HWLOC_API_VERSION >> 16));
    topology t;
    t.host = fs::path(xml_path).stem();
    t.cores = read_cores(handle.get(), nullptr);
    t.gpu_note = "GPUs are not read from a topology file";
    return t;
}

}  // namespace muster
