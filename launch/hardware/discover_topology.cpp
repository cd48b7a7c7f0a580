#include "launch/hardware/discover_topology.hpp"

#include <cerrno>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/process/start_thread.hpp"
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

/// hwloc reads hundreds of small files: in a thread of its own, while the GPUs are asked.
class loading {
  public:
    explicit loading(hwloc_topology_t of) {
        auto const load = [this, of] { fault_ = ::hwloc_topology_load(of) != 0 ? (errno != 0 ? errno : -1) : 0; };
        try {
            thread_ = start_thread("for hwloc", load);
        } catch (error const&) {
            load();  // no thread is left
        }
    }
    ~loading() {
        if (thread_.joinable()) thread_.join();
    }
    loading(loading const&) = delete;
    loading& operator=(loading const&) = delete;

    /// Throws library_error.
    void finish() {
        if (thread_.joinable()) thread_.join();
        if (fault_ != 0) throw library_error("hwloc", "hwloc_topology_load", fault_, "cannot read this machine");
    }

  private:
    int fault_ = 0;
    std::thread thread_;
};

}  // namespace

topology discover_topology(std::string const& host, cpuset const& allowed, environment const& variables, hwloc_handle* kept,
                           std::function<void()> const& meanwhile) {
    auto handle = make_hwloc(kept != nullptr ? hwloc_depth::caches : hwloc_depth::cores);
    loading machine(handle.get());
    if (meanwhile) meanwhile();
    topology t;
    t.host = host;
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
    machine.finish();
    t.cores = read_cores(handle.get(), &allowed);
    if (kept != nullptr) *kept = std::move(handle);
    return t;
}

}  // namespace muster
