// The topology of a node: cores, GPUs and NICs, as far as placing ranks needs them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.hpp"
#include "base/environment.hpp"

namespace muster {

enum class gpu_vendor { nvidia, amd, intel };
std::string_view to_string(gpu_vendor vendor) noexcept;

/// A part of an NVIDIA GPU in MIG mode. A process can use one slice only.
struct mig_slice {
    std::string gpu_uuid;  ///< of the whole GPU, "GPU-…"
    int gpu_instance = 0;
    int compute_instance = 0;
    bool operator==(mig_slice const&) const = default;
};

/// One GPU or MIG slice. `index` is the GPU's place in PCI order among those this process may open: what CUDA calls it with
/// CUDA_DEVICE_ORDER=PCI_BUS_ID (AMD: its place in the driver's order). The slices of a GPU have the index of that GPU.
struct gpu {
    int index = 0;
    std::string uuid;  ///< "GPU-…" or "MIG-…"; empty: not known
    std::string pci;   ///< "0000:07:00.0"; empty: not known
    std::string name;
    int numa = -1;  ///< -1: not known
    gpu_vendor vendor = gpu_vendor::nvidia;
    std::optional<mig_slice> mig;
    cpuset near;                        ///< the CPUs next to it as the kernel says; empty: not known
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool known_to_driver = true;        ///< false: only the scheduler says that it is there
    bool operator==(gpu const&) const = default;
};

/// Its name in the variables of GPU visibility: its index, or the UUID of a MIG slice and of what a scheduler calls so.
std::string visible_name(gpu const& device);

/// More on one node are a fault of who says so.
inline constexpr int most_gpus_of_node = 1024;

/// The GPUs that were found, or why none were.
struct gpu_list {
    std::vector<gpu> gpus;  ///< in order of index
    std::string note;       ///< "NVML, driver 535.54" or "no NVIDIA driver here"
    std::string detail;     ///< what the loader of libraries reported, for --verbose; mostly empty
    std::string hidden_by;  ///< the variable that leaves no GPU visible: "CUDA_VISIBLE_DEVICES=NoDevFiles"; mostly empty
    std::string in_vain;    ///< the variable that names GPUs where there is none: "CUDA_VISIBLE_DEVICES=0,1"; mostly empty
    bool operator==(gpu_list const&) const = default;
};

/// Those of `all` that a CUDA_VISIBLE_DEVICES value (or one like it, called `variable`) names, in its order: indices ("0,2"),
/// UUIDs or unique beginnings of them ("GPU-3f2a"), slices ("MIG-UUID", "MIG-GPU-UUID/GI/CI"); a GPU in MIG mode stands for all
/// its slices. As CUDA does, an empty value means none, and so do -1, NoDevFiles and none. CUDA stops in silence at the first
/// entry that is not right; this throws errc::placement and names it.
std::vector<gpu> select_gpus(std::vector<gpu> const& all, std::string_view visible_devices,
                             std::string_view variable = "CUDA_VISIBLE_DEVICES");

/// A value of CUDA_VISIBLE_DEVICES that leaves nothing visible.
bool means_no_gpu(std::string_view visible_devices) noexcept;

/// Those of `found` that this process' variables leave visible: CUDA_VISIBLE_DEVICES, or ROCR_VISIBLE_DEVICES and then
/// HIP_VISIBLE_DEVICES for AMD, ZE_AFFINITY_MASK for Intel; the note then names the value. Where none was found a variable may be the
/// reason, and `hidden_by` names it, or name some in vain. Throws as select_gpus does.
gpu_list visible_gpus(gpu_list const& found, environment const& variables);

/// The GPUs that a scheduler's job says this process has where no driver shows any: of CUDA_VISIBLE_DEVICES,
/// ROCR_VISIBLE_DEVICES, SLURM_STEP_GPUS or (as a count) SLURM_GPUS_ON_NODE, the first that is there. Empty outside of a job.
gpu_list scheduler_gpus(environment const& variables);

/// A core and those of its hardware threads that may be used.
struct core {
    cpuset cpus;
    int numa = 0;
    int package = 0;
    bool operator==(core const&) const = default;
};

/// In order of package, NUMA node and number.
void put_in_order(std::vector<core>& cores);

/// A network interface with a device behind it (no bridges, no veth, no loopback).
struct nic {
    std::string name;
    int numa = -1;
    bool fabric = false;                ///< InfiniBand, RoCE or Slingshot: made for what ranks send each other
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool operator==(nic const&) const = default;
};

/// A node. `cores` holds only what this process may use (cgroup, affinity), in order of package, NUMA node and number.
struct topology {
    std::string host;
    std::vector<core> cores;
    std::vector<gpu> gpus;  ///< those this process may see, in the order of CUDA_VISIBLE_DEVICES if that says one
    std::vector<nic> nics;
    std::string gpu_note;        ///< why there are no GPUs, or where they were read from
    std::string gpu_detail;      ///< what the loader of libraries reported, for --verbose; mostly empty
    std::string gpus_hidden_by;  ///< the variable that leaves none visible; mostly empty
    std::string gpus_in_vain;    ///< the variable that names some where there is none; mostly empty
    int gpus_in_node = 0;        ///< GPUs (and slices) that are here; `gpus` may be fewer
    std::optional<int>
        cpu_quota;  ///< how many CPUs' time its processes may use (find_cpu_quota), if that is less than its hardware threads
    cpuset allowed() const;
    bool operator==(topology const&) const = default;
};

}  // namespace muster
