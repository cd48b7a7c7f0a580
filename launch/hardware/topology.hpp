// The topology of a node: cores, GPUs and NICs, as far as the placement of ranks needs them.
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

/// A part of an NVIDIA GPU in MIG mode. A process can use only one slice.
struct mig_slice {
    std::string gpu_uuid;  ///< the whole GPU's, "GPU-…"
    int gpu_instance = 0;
    int compute_instance = 0;
    bool operator==(mig_slice const&) const = default;
};

/// One GPU or MIG slice. `index` is the GPU's place in PCI order among those this process may open: CUDA's number for it with
/// CUDA_DEVICE_ORDER=PCI_BUS_ID (AMD: its place in the driver's order). The slices of a GPU have that GPU's index.
struct gpu {
    int index = 0;
    std::string uuid;  ///< "GPU-…" or "MIG-…"; empty: not known
    std::string pci;   ///< "0000:07:00.0"; empty: not known
    std::string name;
    int numa = -1;  ///< -1: not known
    gpu_vendor vendor = gpu_vendor::nvidia;
    std::optional<mig_slice> mig;
    cpuset near;                        ///< the CPUs next to it, according to the kernel; empty: not known
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool known_to_driver = true;        ///< false: only the scheduler says that it exists
    bool operator==(gpu const&) const = default;
};

/// Returns its name in variables such as CUDA_VISIBLE_DEVICES: its index, or the UUID of a MIG slice or of a GPU that a scheduler
/// names by UUID.
std::string visible_name(gpu const& device);

/// Returns the GPUs of the first vendor (NVIDIA, AMD, Intel) that has any, in this order, and numbers them so. Pure.
std::vector<gpu> of_one_vendor(std::vector<gpu> found);

/// A report of more GPUs on one node is wrong.
inline constexpr int most_gpus_of_node = 1024;

/// The GPUs that were found, or why none were found.
struct gpu_list {
    std::vector<gpu> gpus;  ///< in order of index
    std::string note;       ///< "NVML, driver 535.54" or "no NVIDIA driver here"
    std::string detail;     ///< what the loader of libraries reported, for --verbose; mostly empty
    std::string hidden_by;  ///< the variable that leaves no GPU visible: "CUDA_VISIBLE_DEVICES=NoDevFiles"; mostly empty
    std::string in_vain;    ///< the variable that names GPUs although no GPU exists: "CUDA_VISIBLE_DEVICES=0,1"; mostly empty
    bool operator==(gpu_list const&) const = default;
};

/// Returns those of `all` that the value of CUDA_VISIBLE_DEVICES (or of a similar variable, called `variable`) names, in its
/// order: indices ("0,2"), UUIDs or unique beginnings of them ("GPU-3f2a"), slices ("MIG-UUID", "MIG-GPU-UUID/GI/CI"); a GPU in
/// MIG mode stands for all its slices. As in CUDA, an empty value means none, and so do -1, NoDevFiles and none. CUDA silently
/// stops at the first wrong entry; this throws errc::placement and names it.
std::vector<gpu> select_gpus(std::vector<gpu> const& all, std::string_view visible_devices,
                             std::string_view variable = "CUDA_VISIBLE_DEVICES");

/// Returns whether a value of CUDA_VISIBLE_DEVICES leaves no GPU visible.
bool means_no_gpu(std::string_view visible_devices) noexcept;

/// Returns those of `found` that this process' variables leave visible: CUDA_VISIBLE_DEVICES, or ROCR_VISIBLE_DEVICES and then
/// HIP_VISIBLE_DEVICES for AMD, ZE_AFFINITY_MASK for Intel; the note then contains the value. If none was found, `hidden_by`
/// names the variable that may be the reason, and `in_vain` one that names GPUs. Throws as select_gpus does.
gpu_list visible_gpus(gpu_list const& found, environment const& variables);

/// Returns the GPUs that this process has according to a scheduler's job, for a node on which no driver shows any: from the first
/// of CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, SLURM_STEP_GPUS or (as a count) SLURM_GPUS_ON_NODE that is set. Empty outside
/// of a job.
gpu_list scheduler_gpus(environment const& variables);

/// A core and its usable hardware threads.
struct core {
    cpuset cpus;
    int numa = 0;
    int package = 0;
    bool operator==(core const&) const = default;
};

/// Sorts by package, NUMA node and number.
void put_in_order(std::vector<core>& cores);

/// A network interface with a device behind it (no bridges, no veth, no loopback).
struct nic {
    std::string name;
    int numa = -1;
    bool fabric = false;                ///< InfiniBand, RoCE or Slingshot: made for the ranks' messages
    std::vector<std::string> pci_path;  ///< from the root complex down to the device; empty: not known
    bool operator==(nic const&) const = default;
};

/// A node. `cores` contains only what this process may use (cgroup, affinity), in order of package, NUMA node and number.
struct topology {
    std::string host;
    std::vector<core> cores;
    std::vector<gpu> gpus;  ///< those this process may see, in the order of CUDA_VISIBLE_DEVICES if that gives one
    std::vector<nic> nics;
    std::string gpu_note;        ///< why there are no GPUs, or where they were read from
    std::string gpu_detail;      ///< what the loader of libraries reported, for --verbose; mostly empty
    std::string gpus_hidden_by;  ///< the variable that leaves none visible; mostly empty
    std::string gpus_in_vain;    ///< the variable that names GPUs although no GPU exists; mostly empty
    int gpus_in_node = 0;        ///< the number of GPUs (and slices) here; `gpus` may be fewer
    std::optional<int>
        cpu_quota;  ///< how many CPUs' time its processes may use (find_cpu_quota), if that is less than its hardware threads
    cpuset allowed() const;
    bool operator==(topology const&) const = default;
};

}  // namespace muster
