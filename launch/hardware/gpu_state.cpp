#include "launch/hardware/gpu_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "launch/system/end_processes.hpp"

namespace muster {

std::array<std::string, 2> const nvml_names{"libnvidia-ml.so.1", "libnvidia-ml.so"};

namespace {

// Values of nvml.h ("NVML API Reference Guide").
constexpr int nvml_insufficient_size = 7;
constexpr std::size_t most_processes = 64;

struct slowdown {
    unsigned long long bit;
    char const* reason;
};
// Lists slowdowns that have to be mended. An idle GPU, application clocks and the software's power cap are normal.
constexpr std::array slowdowns{
    slowdown{0x08, "hardware slowdown"},
    slowdown{0x20, "heat (software)"},
    slowdown{0x40, "heat (hardware)"},
    slowdown{0x80, "power brake"},
};

std::string describe_process(unsigned pid) {
    auto const name = name_of_process(static_cast<pid_t>(pid));
    return name.empty() ? std::to_string(pid) : fmt::format("{} ({})", pid, name);
}

std::vector<std::string> users_of(nvml_gpu_api const& nvml, nvml_device device) {
    std::array<nvml_process, most_processes> list{};
    unsigned count = most_processes;
    if (nvml.processes == nullptr) return {};
    int const rc = nvml.processes(device, &count, list.data());
    if (rc != nvml_success && rc != nvml_insufficient_size) return {};
    std::vector<std::string> users;
    for (std::size_t i = 0; rc == nvml_success && i < std::min<std::size_t>(count, list.size()); ++i)
        users.push_back(describe_process(list[i].pid));
    if (rc == nvml_insufficient_size) users.push_back(fmt::format("{} processes", count));
    return users;
}

void read_state(nvml_gpu_api const& nvml, nvml_device device, gpu_state& state) {
    nvml_memory memory{};
    if (nvml.memory != nullptr && nvml.memory(device, &memory) == nvml_success) {
        state.memory_bytes = memory.total;
        state.used_bytes = memory.used;
    }
    unsigned long long number = 0;
    if (nvml.ecc_errors != nullptr && nvml.ecc_errors(device, nvml_uncorrected_errors, nvml_since_driver_load, &number) == nvml_success)
        state.ecc_errors = static_cast<std::int64_t>(number);
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
    if (nvml.remapped_rows != nullptr &&
        nvml.remapped_rows(device, &correctable, &uncorrectable, &pending, &failed) == nvml_success)
        state.needs_reset = pending != 0 || failed != 0;
    if (nvml.throttle_reasons != nullptr && nvml.throttle_reasons(device, &number) == nvml_success)
        state.slowed = slowdown_reasons(number);
    unsigned mhz = 0;
    if (nvml.clock != nullptr && nvml.clock(device, nvml_multiprocessor_clock, &mhz) == nvml_success)
        state.clock_mhz = static_cast<int>(mhz);
    if (nvml.most_clock != nullptr && nvml.most_clock(device, nvml_multiprocessor_clock, &mhz) == nvml_success)
        state.most_clock_mhz = static_cast<int>(mhz);
    state.processes = users_of(nvml, device);
}

}  // namespace

std::string slowdown_reasons(unsigned long long bits) {
    std::vector<std::string> words;
    for (auto const& one : slowdowns)
        if ((bits & one.bit) != 0) words.emplace_back(one.reason);
    return join(words, ", ");
}

nvml_gpu_api::nvml_gpu_api(shared_library const& library)
    : init(library.symbol<int()>("nvmlInit_v2")),
      shutdown(library.symbol<int()>("nvmlShutdown")),
      handle_of(library.symbol<int(char const*, nvml_device*)>("nvmlDeviceGetHandleByUUID")),
      memory(library.symbol<int(nvml_device, nvml_memory*)>("nvmlDeviceGetMemoryInfo")),
      ecc_errors(library.symbol<int(nvml_device, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors")),
      remapped_rows(library.symbol<int(nvml_device, unsigned*, unsigned*, unsigned*, unsigned*)>("nvmlDeviceGetRemappedRows")),
      throttle_reasons(library.symbol<int(nvml_device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons")),
      clock(library.symbol<int(nvml_device, int, unsigned*)>("nvmlDeviceGetClockInfo")),
      most_clock(library.symbol<int(nvml_device, int, unsigned*)>("nvmlDeviceGetMaxClockInfo")),
      processes(library.symbol<int(nvml_device, unsigned*, nvml_process*)>("nvmlDeviceGetComputeRunningProcesses_v3")),
      rates(library.symbol<int(nvml_device, nvml_rates*)>("nvmlDeviceGetUtilizationRates")),
      power(library.symbol<int(nvml_device, unsigned*)>("nvmlDeviceGetPowerUsage")),
      temperature(library.symbol<int(nvml_device, int, unsigned*)>("nvmlDeviceGetTemperature")),
      pcie_replays(library.symbol<int(nvml_device, unsigned*)>("nvmlDeviceGetPcieReplayCounter")),
      link_errors(library.symbol<int(nvml_device, unsigned, int, unsigned long long*)>("nvmlDeviceGetNvLinkErrorCounter")) {
    if (processes == nullptr)
        processes = library.symbol<int(nvml_device, unsigned*, nvml_process*)>("nvmlDeviceGetComputeRunningProcesses_v2");
}

std::vector<gpu_state> read_gpu_states(std::vector<gpu> const& gpus) {
    shared_library const library(nvml_names);
    return read_gpu_states(library ? nvml_gpu_api(library) : nvml_gpu_api(), gpus);
}

std::vector<gpu_state> read_gpu_states(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus) {
    std::vector<gpu_state> states;
    for (auto const& g : gpus) {
        gpu_state state;
        state.index = g.index;
        state.uuid = g.uuid;
        state.pci = g.pci;
        state.name = g.name;
        states.push_back(std::move(state));
    }
    if (!nvml.is_usable() || states.empty() || nvml.init() != nvml_success) return states;
    for (auto& state : states) {
        nvml_device device = nullptr;
        if (!state.uuid.empty() && nvml.handle_of(state.uuid.c_str(), &device) == nvml_success) read_state(nvml, device, state);
    }
    nvml.shutdown();
    return states;
}

}  // namespace muster
