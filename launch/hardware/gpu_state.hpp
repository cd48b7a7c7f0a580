// The state of a GPU, read from the driver: memory, errors, clocks, processes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/shared_library.hpp"
#include "launch/hardware/nvml.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

struct gpu_state {
    int index = 0;  ///< as gpu::index
    std::string uuid;
    std::string pci;
    std::string name;
    std::uint64_t memory_bytes = 0;  ///< 0: neither this nor the memory in use is known
    std::uint64_t used_bytes = 0;
    std::int64_t ecc_errors = -1;  ///< uncorrected ones since the driver was loaded; -1: not known
    bool needs_reset = false;      ///< a row of its memory has to be replaced, by a reset of the GPU
    std::string slowed;            ///< why its clocks are reduced ("heat, power brake"); empty: they are not, or not known
    int clock_mhz = 0;             ///< its multiprocessors' clock; 0: not known
    int most_clock_mhz = 0;
    std::vector<std::string> processes;  ///< those that use it, "4711 (python3)"
    bool operator==(gpu_state const&) const = default;
};

// NVML's record of a process, since version 11 (nvmlProcessInfo_t, nvmlProcessInfo_v2_t).
struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
};
struct nvml_memory {
    unsigned long long total, free, used;
};

// NVML's record of how busy a GPU is (nvmlUtilization_t), in percent.
struct nvml_rates {
    unsigned gpu, memory;
};

// Values of nvml.h ("NVML API Reference Guide").
inline constexpr int nvml_uncorrected_errors = 1;
inline constexpr int nvml_since_driver_load = 0;
inline constexpr int nvml_multiprocessor_clock = 1;

/// The names of NVML's library.
extern std::array<std::string, 2> const nvml_names;

/// Returns why clocks are reduced, of NVML's bits: "heat (hardware), power brake"; empty: they are not, or for a reason that is normal. Pure.
std::string slowdown_reasons(unsigned long long bits);

/// Holds NVML's functions for a GPU's state and its samples; each may be missing.
struct nvml_gpu_api {
    nvml_gpu_api() = default;
    explicit nvml_gpu_api(shared_library const& library);
    bool is_usable() const noexcept { return init != nullptr && shutdown != nullptr && handle_of != nullptr; }

    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*handle_of)(char const* uuid, nvml_device*) = nullptr;
    int (*memory)(nvml_device, nvml_memory*) = nullptr;
    int (*ecc_errors)(nvml_device, int type, int counter, unsigned long long*) = nullptr;
    int (*remapped_rows)(nvml_device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
                         unsigned* failed) = nullptr;
    int (*throttle_reasons)(nvml_device, unsigned long long*) = nullptr;
    int (*clock)(nvml_device, int type, unsigned*) = nullptr;
    int (*most_clock)(nvml_device, int type, unsigned*) = nullptr;
    int (*processes)(nvml_device, unsigned* count, nvml_process*) = nullptr;
    int (*rates)(nvml_device, nvml_rates*) = nullptr;
    int (*power)(nvml_device, unsigned* milliwatts) = nullptr;
    int (*temperature)(nvml_device, int sensor, unsigned* celsius) = nullptr;
    int (*pcie_replays)(nvml_device, unsigned*) = nullptr;
    int (*link_errors)(nvml_device, unsigned link, int counter, unsigned long long*) = nullptr;
};

/// Returns the state of each of these GPUs, in their order. Without NVML, and for GPUs that it does not know, only their identity
/// is set.
std::vector<gpu_state> read_gpu_states(std::vector<gpu> const& gpus);
/// Does the same with the given NVML.
std::vector<gpu_state> read_gpu_states(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus);

}  // namespace muster
