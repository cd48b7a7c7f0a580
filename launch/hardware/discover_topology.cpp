#include "launch/hardware/discover_topology.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "launch/hardware/nvml.hpp"
#include "launch/hardware/sysfs.hpp"
#include "launch/system/cgroup.hpp"

namespace muster {

namespace {

/// Finds GPUs by NVML; if it shows none, by the kernel; if that shows none, by the scheduler.
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

/// Returns whether hwloc has to be asked: a variable of hwloc's may name another machine than this one, or a part of it.
bool asks_hwloc(environment const& variables) {
    return std::ranges::any_of(variables, [](auto const& one) { return one.first.starts_with("HWLOC_"); });
}

std::vector<core> find_cores(cpuset const& allowed, environment const& variables, hwloc_handle& handle) {
    if (auto by_kernel = asks_hwloc(variables) ? std::nullopt : sysfs().read_cores(allowed)) return std::move(*by_kernel);
    if (!handle) handle = make_hwloc(hwloc_depth::cores);
    load_here(handle.get());
    return read_cores(handle.get(), &allowed);
}

}  // namespace

topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables, hwloc_handle* kept) {
    auto handle = kept != nullptr ? make_hwloc(hwloc_depth::caches) : hwloc_handle();
    topology t;
    t.host = host;
    t.cores = find_cores(allowed, variables, handle);
    if (auto const quota = own_cpu_quota(); quota && static_cast<std::size_t>(*quota) < t.allowed().cpus.size())
        t.cpu_quota = quota;
    t.nics = sysfs().read_nics();
    bool known_to_driver = false;
    auto found = find_gpus(variables, known_to_driver);
    t.gpus_in_node = static_cast<int>(found.gpus.size());
    bool const by_scheduler = !known_to_driver && !found.gpus.empty();
    auto seen = by_scheduler ? std::move(found) : visible_gpus(found, variables);
    t.gpus = std::move(seen.gpus);
    t.gpu_note = std::move(seen.note);
    t.gpu_detail = std::move(seen.detail);
    t.gpus_hidden_by = std::move(seen.hidden_by);
    t.gpus_in_vain = std::move(seen.in_vain);
    if (kept != nullptr) *kept = std::move(handle);
    return t;
}

}  // namespace muster
