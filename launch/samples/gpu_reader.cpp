#include "launch/samples/gpu_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace muster {

namespace {

// Values of nvml.h ("NVML API Reference Guide").
constexpr int core_temperature = 0;
constexpr unsigned most_links = 18;
constexpr int replays_of_link = 0;

/// Calls a function of NVML, which may be missing, for a number; returns nothing if NVML does not know it.
template <typename Number, typename Function, typename... Which>
std::optional<Number> ask(Function* function, nvml_device gpu, Which... which) {
    Number value = 0;
    return function != nullptr && function(gpu, which..., &value) == nvml_success ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> count_replays(nvml_gpu_api const& nvml, nvml_device gpu, std::vector<unsigned> const& links) {
    std::optional<std::int64_t> sum = ask<unsigned>(nvml.pcie_replays, gpu);
    for (auto const link : links)
        if (auto const more = ask<unsigned long long>(nvml.link_errors, gpu, link, replays_of_link))
            sum = sum.value_or(0) + static_cast<std::int64_t>(*more);
    return sum;
}

}  // namespace

std::string gpu_number(gpu const& device) {
    return device.mig ? fmt::format("{}/{}", device.index, device.mig->gpu_instance) : std::to_string(device.index);
}

gpu_reader::gpu_reader(std::vector<gpu> const& gpus) : library_(nvml_names) {
    if (library_) open(nvml_gpu_api(library_), gpus);
}

gpu_reader::gpu_reader(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus) : library_(std::span<std::string const>()) {
    open(nvml, gpus);
}

void gpu_reader::open(nvml_gpu_api const& nvml, std::vector<gpu> const& gpus) {
    nvml_ = nvml;
    if (!nvml_.is_usable() || gpus.empty() || nvml_.init() != nvml_success) return;
    open_ = true;
    for (auto const& one : gpus) {
        nvml_device handle = nullptr;
        if (one.uuid.empty() || nvml_.handle_of(one.uuid.c_str(), &handle) != nvml_success) continue;
        auto& found = known_.emplace_back(known_gpu{handle, {.number = gpu_number(one), .name = one.name}, {}});
        found.constant.most_clock_mhz = ask<unsigned>(nvml_.most_clock, handle, nvml_multiprocessor_clock);
        for (unsigned link = 0; link < most_links; ++link)
            if (ask<unsigned long long>(nvml_.link_errors, handle, link, replays_of_link)) found.links.push_back(link);
    }
}

gpu_reader::~gpu_reader() {
    if (open_) nvml_.shutdown();
}

std::vector<gpu_sample> gpu_reader::read() const {
    std::vector<gpu_sample> all;
    for (auto const& one : known_) {
        auto& now = all.emplace_back(one.constant);
        nvml_rates rates{};
        if (nvml_.rates != nullptr && nvml_.rates(one.handle, &rates) == nvml_success)
            now.busy_percent = static_cast<int>(std::min(rates.gpu, 100u));
        nvml_memory memory{};
        if (nvml_.memory != nullptr && nvml_.memory(one.handle, &memory) == nvml_success)
            now.memory_bytes = memory.total, now.used_bytes = memory.used;
        if (auto const milliwatts = ask<unsigned>(nvml_.power, one.handle))
            now.watts = static_cast<int>((*milliwatts + 500) / 1000);
        now.clock_mhz = ask<unsigned>(nvml_.clock, one.handle, nvml_multiprocessor_clock);
        now.slowed = slowdown_reasons(ask<unsigned long long>(nvml_.throttle_reasons, one.handle).value_or(0));
        now.celsius = ask<unsigned>(nvml_.temperature, one.handle, core_temperature);
        now.ecc_errors = ask<unsigned long long>(nvml_.ecc_errors, one.handle, nvml_uncorrected_errors, nvml_since_driver_load);
        unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
        if (nvml_.remapped_rows != nullptr &&
            nvml_.remapped_rows(one.handle, &corrected, &uncorrected, &pending, &failed) == nvml_success)
            now.remapped_rows = std::int64_t{corrected} + uncorrected;
        now.link_replays = count_replays(nvml_, one.handle, one.links);
    }
    return all;
}

}  // namespace muster
