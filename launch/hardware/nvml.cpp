#include "launch/hardware/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "launch/hardware/pci.hpp"

namespace muster {

namespace {

constexpr int nvml_no_permission = 4;
constexpr unsigned most_devices = 4096;
constexpr unsigned mig_enabled = 1;
using name_buffer = std::array<char, 96>;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE; the driver's: 80

std::string text_of(int (*function)(nvml_device, char*, unsigned), nvml_device device) {
    name_buffer text{};
    if (function(device, text.data(), text.size()) != nvml_success) return {};
    text.back() = '\0';
    return text.data();
}

/// A whole GPU with its address, by which GPUs are sorted.
struct whole_gpu {
    pci_address address;
    nvml_device handle = nullptr;
    gpu device;
};

/// Returns the slices of a GPU; nothing if it is not in MIG mode.
std::optional<std::vector<gpu>> read_slices(nvml_api const& nvml, whole_gpu const& whole) {
    unsigned current = 0, pending = 0, count = 0;
    if (!nvml.knows_mig() || nvml.mig_mode(whole.handle, &current, &pending) != nvml_success || current != mig_enabled)
        return std::nullopt;
    std::vector<gpu> slices;
    if (nvml.mig_count(whole.handle, &count) != nvml_success) return slices;
    for (unsigned i = 0; i < std::min(count, most_devices); ++i) {
        nvml_device handle = nullptr;
        unsigned gpu_instance = 0, compute_instance = 0;
        // The numbers have gaps; NVML also reports a slice that this process may not use as "not found".
        if (nvml.mig_handle(whole.handle, i, &handle) != nvml_success) continue;
        if (nvml.gpu_instance(handle, &gpu_instance) != nvml_success ||
            nvml.compute_instance(handle, &compute_instance) != nvml_success)
            continue;
        gpu slice = whole.device;
        slice.mig = mig_slice{whole.device.uuid, static_cast<int>(gpu_instance), static_cast<int>(compute_instance)};
        slice.uuid = text_of(nvml.uuid, handle);
        if (auto const name = text_of(nvml.name, handle); !name.empty()) slice.name = name;
        if (!slice.uuid.empty()) slices.push_back(std::move(slice));
    }
    return slices;
}

/// Returns device `number`, or why it cannot be used.
std::variant<whole_gpu, std::string> read_whole(nvml_api const& nvml, unsigned number, sysfs const& files) {
    whole_gpu whole;
    nvml_pci_info pci{};
    // nvmlDeviceGetCount counts devices that nvmlDeviceGetHandleByIndex then refuses, such as in a job that got only some of
    // them.
    if (int const rc = nvml.handle(number, &whole.handle); rc != nvml_success)
        return rc == nvml_no_permission ? std::string() : fmt::format("device {}: {}", number, nvml.error_string(rc));
    if (int const rc = nvml.pci(whole.handle, &pci); rc != nvml_success)
        return fmt::format("device {}: {}", number, nvml.error_string(rc));
    whole.address = {pci.domain, pci.bus, pci.device, 0};
    whole.device.uuid = text_of(nvml.uuid, whole.handle);
    whole.device.name = text_of(nvml.name, whole.handle);
    whole.device.pci = whole.address.text();
    files.set_place(whole.device);
    return whole;
}

gpu_list enumerate(nvml_api const& nvml, sysfs const& files) {
    unsigned count = 0;
    if (int const rc = nvml.count(&count); rc != nvml_success) return {{}, fmt::format("NVML: {}", nvml.error_string(rc)), {}};
    std::vector<whole_gpu> wholes;
    std::string left_out;
    unsigned refused = 0;
    for (unsigned i = 0; i < std::min(count, most_devices); ++i) {
        auto read = read_whole(nvml, i, files);
        if (auto* const whole = std::get_if<whole_gpu>(&read))
            wholes.push_back(std::move(*whole));
        else if (auto const& why = std::get<std::string>(read); !why.empty())
            left_out += "; " + why;
        else
            ++refused;
    }
    if (refused > 0) left_out += fmt::format("; {} not for this process", refused);
    // NVML's order may change from boot to boot; CUDA's, with CUDA_DEVICE_ORDER=PCI_BUS_ID, is that of the addresses.
    std::ranges::sort(wholes, [](auto const& a, auto const& b) { return a.address < b.address; });
    gpu_list list;
    for (std::size_t i = 0; i < wholes.size(); ++i) {
        wholes[i].device.index = static_cast<int>(i);
        auto slices = read_slices(nvml, wholes[i]);
        if (!slices) {
            list.gpus.push_back(std::move(wholes[i].device));
            continue;
        }
        if (slices->empty()) left_out += fmt::format("; GPU {} is in MIG mode and has no slice", i);
        for (auto& slice : *slices) list.gpus.push_back(std::move(slice));
    }
    name_buffer driver{};
    if (nvml.driver(driver.data(), driver.size()) != nvml_success) driver[0] = '?';
    driver.back() = '\0';
    list.note = fmt::format("NVML, driver {}{}{}", driver.data(), list.gpus.empty() ? ", no GPU" : "", left_out);
    return list;
}

}  // namespace

nvml_api::nvml_api(shared_library const& library)
    : init(library.symbol<int()>("nvmlInit_v2")),
      shutdown(library.symbol<int()>("nvmlShutdown")),
      error_string(library.symbol<char const*(int)>("nvmlErrorString")),
      count(library.symbol<int(unsigned*)>("nvmlDeviceGetCount_v2")),
      handle(library.symbol<int(unsigned, nvml_device*)>("nvmlDeviceGetHandleByIndex_v2")),
      uuid(library.symbol<int(nvml_device, char*, unsigned)>("nvmlDeviceGetUUID")),
      name(library.symbol<int(nvml_device, char*, unsigned)>("nvmlDeviceGetName")),
      pci(library.symbol<int(nvml_device, nvml_pci_info*)>("nvmlDeviceGetPciInfo_v3")),
      driver(library.symbol<int(char*, unsigned)>("nvmlSystemGetDriverVersion")),
      mig_mode(library.symbol<int(nvml_device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode")),
      mig_count(library.symbol<int(nvml_device, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount")),
      mig_handle(library.symbol<int(nvml_device, unsigned, nvml_device*)>("nvmlDeviceGetMigDeviceHandleByIndex")),
      gpu_instance(library.symbol<int(nvml_device, unsigned*)>("nvmlDeviceGetGpuInstanceId")),
      compute_instance(library.symbol<int(nvml_device, unsigned*)>("nvmlDeviceGetComputeInstanceId")) {}

gpu_list read_nvml_gpus(sysfs const& files) {
    static std::array<std::string, 2> const names{"libnvidia-ml.so.1", "libnvidia-ml.so"};
    shared_library const library(names);
    if (!library) return {{}, "no NVIDIA driver here", library.missing()};
    nvml_api const nvml(library);
    if (!nvml.complete()) return {{}, fmt::format("{} lacks functions of NVML 10; install a newer driver", library.name()), {}};
    return read_nvml_gpus(nvml, files);
}

gpu_list read_nvml_gpus(nvml_api const& nvml, sysfs const& files) {
    if (int const rc = nvml.init(); rc != nvml_success) return {{}, fmt::format("NVML: {}", nvml.error_string(rc)), {}};
    struct closer {
        nvml_api const& api;
        ~closer() { api.shutdown(); }
    } const close{nvml};
    return enumerate(nvml, files);
}

}  // namespace muster
