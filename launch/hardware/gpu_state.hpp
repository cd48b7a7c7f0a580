// The state of a GPU (memory, errors, clocks, processes) and its use (how busy it is, memory, power), read from the driver.
#pragma once

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

/// Holds NVML's functions for a GPU's state and its use; each may be missing.
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
};

/// Returns the state of each of these GPUs, in their order. Without NVML, and for GPUs that it does not know, only their identity
/// is set.
std::vector<gpu_state> read_gpu_states(std::vector<gpu> const& gpus);
/// Does the same with the given NVML.
std::vector<gpu_state> read_gpu_states(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus);

// The use of a GPU at this moment (how busy it is, memory, power), read from the driver again and again.

struct gpu_use {
    std::string number;  ///< gpu::index; for a MIG slice with its GPU instance, "0/3"
    std::string name;
    int busy_percent = -1;           ///< the share of the last second in which a kernel ran; -1: not known, as for MIG slices
    std::uint64_t memory_bytes = 0;  ///< 0: neither this nor the memory in use is known
    std::uint64_t used_bytes = 0;
    int watts = -1;  ///< -1: not known
    bool operator==(gpu_use const&) const = default;
};

/// Keeps NVML open: opening it for each look costs far more than the look.
class gpu_use_reader {
  public:
    /// Reads those of these GPUs that NVML knows; without NVML none.
    explicit gpu_use_reader(std::vector<gpu> const& gpus);
    /// Does the same with the given NVML.
    gpu_use_reader(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus);
    ~gpu_use_reader();
    gpu_use_reader(gpu_use_reader const&) = delete;
    gpu_use_reader& operator=(gpu_use_reader const&) = delete;

    bool empty() const noexcept { return known_.empty(); }
    /// Returns the uses in the given order. May block for long in the driver of a GPU that does not answer.
    std::vector<gpu_use> read() const;

  private:
    struct known_gpu {
        nvml_device handle;
        gpu_use use;  ///< the constant part
    };
    void open(std::vector<gpu> const& gpus);

    shared_library library_;
    nvml_gpu_api nvml_;
    bool open_ = false;
    std::vector<known_gpu> known_;
};

}  // namespace muster
