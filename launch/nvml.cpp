#include "launch/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.hpp"
#include "base/shared_library.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

// The few declarations needed of NVML's documented ABI (nvml.h, "NVML API Reference Guide"), so that no CUDA toolkit is needed to
// build.
using nvml_device = struct nvml_device_record*;
struct nvml_pci_info {
    std::array<char, 16> bus_id_legacy;
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    std::array<char, 32> bus_id;
};
constexpr int nvml_success = 0;

struct nvml_api {
    explicit nvml_api(shared_library const& library)
        : init(library.symbol<int()>("nvmlInit_v2")),
          shutdown(library.symbol<int()>("nvmlShutdown")),
          error_string(library.symbol<char const*(int)>("nvmlErrorString")),
          count(library.symbol<int(unsigned*)>("nvmlDeviceGetCount_v2")),
          handle(library.symbol<int(unsigned, nvml_device*)>("nvmlDeviceGetHandleByIndex_v2")),
          uuid(library.symbol<int(nvml_device, char*, unsigned)>("nvmlDeviceGetUUID")),
          name(library.symbol<int(nvml_device, char*, unsigned)>("nvmlDeviceGetName")),
          pci(library.symbol<int(nvml_device, nvml_pci_info*)>("nvmlDeviceGetPciInfo_v3")),
          driver(library.symbol<int(char*, unsigned)>("nvmlSystemGetDriverVersion")) {}
    bool complete() const { return init && shutdown && error_string && count && handle && uuid && name && pci && driver; }

    int (*init)();
    int (*shutdown)();
    char const* (*error_string)(int);
    int (*count)(unsigned*);
    int (*handle)(unsigned, nvml_device*);
    int (*uuid)(nvml_device, char*, unsigned);
    int (*name)(nvml_device, char*, unsigned);
    int (*pci)(nvml_device, nvml_pci_info*);
    int (*driver)(char*, unsigned);
};

int numa_of(std::string const& pci) {
    std::ifstream file("/sys/bus/pci/devices/" + pci + "/numa_node");
    int numa = -1;
    file >> numa;
    return file ? numa : -1;
}

/// NVML writes "00000000:07:00.0"; sysfs has a domain of four digits and lower case.
std::string sysfs_address(nvml_pci_info const& info) {
    return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

std::vector<gpu> enumerate(nvml_api const& nvml, unsigned count) {
    std::vector<gpu> gpus;
    for (unsigned i = 0; i < count; ++i) {
        nvml_device device = nullptr;
        std::array<char, 96> uuid{};
        std::array<char, 96> name{};
        nvml_pci_info pci{};
        if (int const rc = nvml.handle(i, &device); rc != nvml_success)
            throw library_error("NVML", fmt::format("nvmlDeviceGetHandleByIndex({})", i), rc, nvml.error_string(rc));
        if (int const rc = nvml.uuid(device, uuid.data(), uuid.size()); rc != nvml_success)
            throw library_error("NVML", fmt::format("nvmlDeviceGetUUID of device {}", i), rc, nvml.error_string(rc));
        if (int const rc = nvml.pci(device, &pci); rc != nvml_success)
            throw library_error("NVML", fmt::format("nvmlDeviceGetPciInfo of device {}", i), rc, nvml.error_string(rc));
        nvml.name(device, name.data(), name.size());
        auto const address = sysfs_address(pci);
        gpus.push_back({static_cast<int>(i), uuid.data(), address, name.data(), numa_of(address)});
    }
    std::sort(gpus.begin(), gpus.end(), [](gpu const& a, gpu const& b) { return a.pci < b.pci; });
    for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].index = static_cast<int>(i);
    return gpus;
}

gpu const& find_gpu(std::vector<gpu> const& all, std::string_view entry, std::string_view value) {
    std::vector<gpu const*> matches;
    if (auto const index = parse_integer(entry)) {
        for (auto const& g : all)
            if (g.index == *index) matches.push_back(&g);
    } else if (entry.starts_with("GPU-")) {
        for (auto const& g : all)
            if (std::string_view(g.uuid).starts_with(entry)) matches.push_back(&g);
    } else {
        throw error(errc::placement,
                    fmt::format("CUDA_VISIBLE_DEVICES={}: '{}' is neither an index nor a GPU-UUID; MIG slices are not supported: "
                                "give whole GPUs",
                                value, entry));
    }
    if (matches.empty())
        throw error(
            errc::placement,
            fmt::format("CUDA_VISIBLE_DEVICES={}: there is no GPU '{}' here, only {} GPUs; unset it or name those that exist",
                        value, entry, all.size()));
    if (matches.size() > 1)
        throw error(errc::placement, fmt::format("CUDA_VISIBLE_DEVICES={}: '{}' fits {} GPUs; give more of the UUID", value,
                                                 entry, matches.size()));
    return *matches.front();
}

}  // namespace

gpu_list read_gpus() {
    static std::array<std::string, 2> const names{"libnvidia-ml.so.1", "libnvidia-ml.so"};
    shared_library const library(names);
    if (!library) return {{}, "no NVML: " + library.missing()};
    nvml_api const nvml(library);
    if (!nvml.complete()) return {{}, fmt::format("{} lacks the functions of NVML 11 or later", library.name())};
    if (int const rc = nvml.init(); rc != nvml_success) return {{}, fmt::format("NVML: {}", nvml.error_string(rc))};
    struct closer {
        nvml_api const& api;
        ~closer() { api.shutdown(); }
    } const close{nvml};
    unsigned count = 0;
    if (int const rc = nvml.count(&count); rc != nvml_success) return {{}, fmt::format("NVML: {}", nvml.error_string(rc))};
    std::array<char, 96> driver{};
    nvml.driver(driver.data(), driver.size());
    return {enumerate(nvml, count), fmt::format("NVML, driver {}", driver.data())};
}

std::vector<gpu> select_gpus(std::vector<gpu> const& all, std::string_view visible_devices) {
    std::vector<gpu> selected;
    auto const value = trim(visible_devices);
    if (value.empty() || value == "-1" || value == "NoDevFiles" || value == "none") return selected;
    for (auto const piece : split(visible_devices, ',')) {
        auto const& found = find_gpu(all, trim(piece), visible_devices);
        if (std::find(selected.begin(), selected.end(), found) != selected.end())
            throw error(errc::placement,
                        fmt::format("CUDA_VISIBLE_DEVICES={}: '{}' is named twice", visible_devices, trim(piece)));
        selected.push_back(found);
    }
    return selected;
}

}  // namespace muster
