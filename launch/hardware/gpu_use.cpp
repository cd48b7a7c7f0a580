#include "launch/hardware/gpu_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster {

namespace {

std::array<std::string, 2> const nvml_names{"libnvidia-ml.so.1", "libnvidia-ml.so"};

std::string number_of(gpu const& device) {
    return device.mig ? fmt::format("{}/{}", device.index, device.mig->gpu_instance) : std::to_string(device.index);
}

}  // namespace

nvml_use_api::nvml_use_api(shared_library const& library)
    : init(library.symbol<int()>("nvmlInit_v2")),
      shutdown(library.symbol<int()>("nvmlShutdown")),
      handle_of(library.symbol<int(char const*, nvml_device*)>("nvmlDeviceGetHandleByUUID")),
      memory(library.symbol<int(nvml_device, nvml_memory*)>("nvmlDeviceGetMemoryInfo")),
      rates(library.symbol<int(nvml_device, nvml_rates*)>("nvmlDeviceGetUtilizationRates")),
      power(library.symbol<int(nvml_device, unsigned*)>("nvmlDeviceGetPowerUsage")) {}

gpu_use_reader::gpu_use_reader(std::vector<gpu> const& gpus) : library_(nvml_names) {
    if (library_) nvml_ = nvml_use_api(library_);
    open(gpus);
}

gpu_use_reader::gpu_use_reader(nvml_use_api const& nvml, std::vector<gpu> const& gpus)
    : library_(std::span<std::string const>()), nvml_(nvml) {
    open(gpus);
}

void gpu_use_reader::open(std::vector<gpu> const& gpus) {
    bool const usable = nvml_.init != nullptr && nvml_.shutdown != nullptr && nvml_.handle_of != nullptr;
    if (!usable || gpus.empty() || nvml_.init() != nvml_success) return;
    open_ = true;
    for (auto const& one : gpus) {
        nvml_device handle = nullptr;
        if (one.uuid.empty() || nvml_.handle_of(one.uuid.c_str(), &handle) != nvml_success) continue;
        known_.push_back({handle, {.number = number_of(one), .name = one.name}});
    }
}

gpu_use_reader::~gpu_use_reader() {
    if (open_) nvml_.shutdown();
}

std::vector<gpu_use> gpu_use_reader::read() const {
    std::vector<gpu_use> all;
    for (auto const& one : known_) {
        auto use = one.use;
        nvml_rates rates{};
        if (nvml_.rates != nullptr && nvml_.rates(one.handle, &rates) == nvml_success)
            use.busy_percent = static_cast<int>(std::min(rates.gpu, 100u));
        nvml_memory memory{};
        if (nvml_.memory != nullptr && nvml_.memory(one.handle, &memory) == nvml_success) {
            use.memory_bytes = memory.total;
            use.used_bytes = memory.used;
        }
        unsigned milliwatts = 0;
        if (nvml_.power != nullptr && nvml_.power(one.handle, &milliwatts) == nvml_success)
            use.watts = static_cast<int>((milliwatts + 500) / 1000);
        all.push_back(std::move(use));
    }
    return all;
}

}  // namespace muster
