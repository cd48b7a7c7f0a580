// Lists the GPUs of this node by NVML, the driver's library, if it is installed.
#pragma once

#include <array>

#include "base/shared_library.hpp"
#include "launch/hardware/sysfs.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

// Declares the few functions used of NVML's documented ABI (nvml.h, "NVML API Reference Guide"), so that the build needs no CUDA
// toolkit.
inline constexpr int nvml_success = 0;  ///< NVML_SUCCESS
using nvml_device = struct nvml_device_record*;
struct nvml_pci_info {
    std::array<char, 16> bus_id_legacy;
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    std::array<char, 32> bus_id;
};

/// Holds NVML's functions, loaded or given by a test. The MIG ones came with NVML 11 and may be missing.
struct nvml_api {
    nvml_api() = default;
    explicit nvml_api(shared_library const& library);
    bool complete() const { return init && shutdown && error_string && count && handle && uuid && name && pci && driver; }
    bool knows_mig() const { return mig_mode && mig_count && mig_handle && gpu_instance && compute_instance; }

    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    char const* (*error_string)(int) = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*handle)(unsigned, nvml_device*) = nullptr;
    int (*uuid)(nvml_device, char*, unsigned) = nullptr;
    int (*name)(nvml_device, char*, unsigned) = nullptr;
    int (*pci)(nvml_device, nvml_pci_info*) = nullptr;
    int (*driver)(char*, unsigned) = nullptr;
    int (*mig_mode)(nvml_device, unsigned* current, unsigned* pending) = nullptr;
    int (*mig_count)(nvml_device, unsigned*) = nullptr;
    int (*mig_handle)(nvml_device, unsigned, nvml_device*) = nullptr;
    int (*gpu_instance)(nvml_device, unsigned*) = nullptr;
    int (*compute_instance)(nvml_device, unsigned*) = nullptr;
};

/// Asks NVML, which is loaded at run time. A missing library, driver or device is no error: the list is empty and the note says
/// why. Leaves out GPUs that this process may not open, that are lost, or that are in MIG mode without a slice; the note names
/// them. Reads the GPUs' places from `files`.
gpu_list read_nvml_gpus(sysfs const& files);
/// Does the same with the given NVML.
gpu_list read_nvml_gpus(nvml_api const& nvml, sysfs const& files);

}  // namespace muster
