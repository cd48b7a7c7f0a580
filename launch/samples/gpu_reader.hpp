// Reads what a node's GPUs do from the driver, again and again: how busy they are, memory, power, clock, temperature, errors.
#pragma once

#include <vector>

#include "base/shared_library.hpp"
#include "launch/hardware/gpu_state.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/samples/run_samples.hpp"

namespace muster {

/// Returns its number in samples: gpu::index; of a MIG slice with its GPU instance, "0/3". Pure.
std::string gpu_number(gpu const& device);

/// Keeps NVML open: opening it for each look costs far more than the look. Single-threaded.
class gpu_reader {
  public:
    /// Reads those of these GPUs that NVML knows; without NVML none.
    explicit gpu_reader(std::vector<gpu> const& gpus);
    /// Does the same with the given NVML.
    gpu_reader(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus);
    ~gpu_reader();
    gpu_reader(gpu_reader const&) = delete;
    gpu_reader& operator=(gpu_reader const&) = delete;

    /// Returns their samples in the given order, without figures of the whole run. May block for long in the driver of a GPU that does not answer.
    std::vector<gpu_sample> read() const;

  private:
    struct known_gpu {
        nvml_device handle;
        gpu_sample constant;
        std::vector<unsigned> links;  ///< those of NVLink that tell of errors
    };
    void open(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus);

    shared_library library_;
    nvml_gpu_api nvml_;
    bool open_ = false;
    std::vector<known_gpu> known_;
};

}  // namespace muster
