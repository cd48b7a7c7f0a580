#include "launch/hardware/discover_topology.hpp"

#include <utility>

#include "base/error.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/nvml.hpp"
#include "launch/hardware/sysfs.hpp"

namespace muster {

namespace {

/// NVML if it shows anything, else what the kernel shows, else what the scheduler says.
gpu_list find_gpus(environment const& variables, bool& known_to_driver) {
    sysfs const files;
    auto found = read_nvml_gpus(files);
    known_to_driver = true;
    if (!found.gpus.empty()) return found;
    auto by_kernel = files.read_gpus();
    if (!by_kernel.gpus.empty()) {
        by_kernel.note += "; " + found.note;
        return by_kernel;
    }
    known_to_driver = false;
    auto by_scheduler = scheduler_gpus(variables);
    if (!by_scheduler.gpus.empty()) return by_scheduler;
    return {{}, found.note + "; " + by_kernel.note, found.detail};
}

}  // namespace

topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables, hwloc_handle* kept) {
    auto handle = make_hwloc(kept != nullptr ? hwloc_depth::caches : hwloc_depth::cores);
    if (::hwloc_topology_load(handle.get()) != 0)
        throw library_error("hwloc", "hwloc_topology_load", errno, "cannot read this machine");
    topology t;
    t.host = host;
    t.cores = read_cores(handle.get(), &allowed);
    t.nics = sysfs().read_nics();
    bool known_to_driver = false;
    auto found = find_gpus(variables, known_to_driver);
    t.gpus_in_node = static_cast<int>(found.gpus.size());
    bool const by_scheduler = !known_to_driver && !found.gpus.empty();
    auto seen = by_scheduler ? std::move(found) : visible_gpus(found, variables);
    t.gpus = std::move(seen.gpus);
    t.gpu_note = std::move(seen.note);
    t.gpu_detail = std::move(seen.detail);
    if (kept != nullptr) *kept = std::move(handle);
    return t;
}

}  // namespace muster
