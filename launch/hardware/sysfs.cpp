#include "launch/hardware/sysfs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/hardware/pci.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_value = 4096;

/// Returns the first 4 KiB of a file, trimmed.
std::string read_text(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(longest_value, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    return std::string(trim(text));
}

/// Returns a number from -1 to 2^20, or `otherwise`.
int read_number(std::string const& path, int otherwise) {
    auto const value = parse_integer(read_text(path));
    return value && *value >= -1 && *value < 1 << 20 ? static_cast<int>(*value) : otherwise;
}

/// Reads "0x10de"; returns 0 if it is not a number.
std::uint32_t read_hex(std::string const& path) {
    auto const text = read_text(path);
    std::uint32_t value = 0;
    if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    return value;
}

/// Reads a file with a list such as "0-3,8"; returns an empty set if it holds none.
cpuset read_cpus(std::string const& path) {
    return cpuset::from_list_or_none(read_text(path));
}

/// Returns the name that a link points to, such as a device's driver.
std::string link_name(std::string const& path) {
    std::error_code fault;
    auto const target = fs::read_symlink(path, fault);
    return fault ? std::string() : target.filename().string();
}

/// Returns the names in a folder, sorted.
std::vector<std::string> names_in(std::string const& folder) {
    std::vector<std::string> names;
    for (auto const& entry : folder_entries(folder)) names.push_back(entry.filename());
    std::ranges::sort(names);
    return names;
}

/// Returns the steps from the root complex to a device: the end of its real path, "…/pci0000:00/0000:00:01.1/0000:07:00.0".
std::vector<std::string> path_steps(std::string const& link) {
    std::vector<std::string> steps;
    std::error_code fault;
    for (auto const& part : fs::canonical(link, fault)) {
        auto const name = part.string();
        if (name.starts_with("pci") && name.find(':') != std::string::npos)
            steps.assign(1, name);
        else if (!steps.empty() && pci_address::parse(name))
            steps.push_back(name);
        else if (!steps.empty())
            break;
    }
    return steps;
}

/// Returns the value in the line "KEY: VALUE" or "KEY VALUE" of a text.
std::string value_of(std::string_view text, std::string_view key) {
    for (auto const line : split(text, '\n')) {
        if (!line.starts_with(key)) continue;
        auto rest = line.substr(key.size());
        if (rest.empty() || (rest.front() != ':' && rest.front() != ' ')) continue;
        rest.remove_prefix(1);
        return std::string(trim(rest));
    }
    return {};
}

constexpr int unknown = -1;

/// Returns the lowest node that each CPU is in; nothing if the files do not list the nodes, or this process may not use the
/// memory of one: the cores then belong to other nodes than the files say, which hwloc works out.
std::optional<std::map<int, int>> numa_nodes(std::string const& root) {
    auto const folder = root + "/sys/devices/system/node/";
    auto const nodes = read_cpus(folder + "online");  // a list in the same form
    auto const usable = cpuset::from_list_or_none(value_of(read_text_file(root + "/proc/self/status"), "Mems_allowed_list"));
    if (nodes.empty() || intersect(nodes, usable) != nodes) return std::nullopt;
    std::map<int, int> node_of;
    for (int const node : nodes.cpus)
        for (int const cpu : read_cpus(folder + "node" + std::to_string(node) + "/cpulist").cpus) node_of.try_emplace(cpu, node);
    return node_of;
}

/// Returns the hardware threads of a CPU's core; Linux before 5.3 has only the second name.
cpuset threads_beside(std::string const& topology) {
    auto threads = read_cpus(topology + "core_cpus_list");
    return threads.empty() ? read_cpus(topology + "thread_siblings_list") : threads;
}

struct pci_device {
    pci_address address;
    gpu_vendor vendor = gpu_vendor::nvidia;
    std::string driver;
};

/// A GPU, and its place in its driver's order if that is not the PCI order.
struct found_gpu {
    gpu device;
    int order = 0;
};

/// Holds what AMD's driver says about one of its GPUs.
struct kfd_node {
    int number = 0;
    std::uint64_t unique_id = 0;
};
using kfd_nodes = std::map<pci_address, kfd_node>;

std::uint64_t number_of(std::string_view text, std::string_view key) {
    auto const value = value_of(text, key);
    std::uint64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return number;
}

/// Returns the GPUs of AMD's driver that have a unique ID, which graphics built into a processor has not. A process can read the
/// properties of only those GPUs that its control group allows.
kfd_nodes read_kfd(std::string const& root) {
    kfd_nodes nodes;
    auto const folder = root + "/sys/class/kfd/kfd/topology/nodes/";
    for (auto const& name : names_in(folder)) {
        auto const number = parse_integer(name);
        auto const text = read_text(folder + name + "/properties");
        auto const unique_id = number_of(text, "unique_id");
        if (!number || unique_id == 0 || number_of(text, "simd_count") == 0) continue;
        auto const location = static_cast<unsigned>(number_of(text, "location_id"));
        pci_address const address{static_cast<unsigned>(number_of(text, "domain")), location >> 8 & 0xff, location >> 3 & 0x1f,
                                  location & 7};
        nodes[address] = {static_cast<int>(*number), unique_id};
    }
    return nodes;
}

std::string model_of(gpu_vendor vendor) {
    switch (vendor) {
        case gpu_vendor::nvidia: return "NVIDIA GPU";
        case gpu_vendor::amd: return "AMD GPU";
        case gpu_vendor::intel: return "Intel GPU";
    }
    return "GPU";
}

bool has_its_driver(pci_device const& device) {
    switch (device.vendor) {
        case gpu_vendor::nvidia: return device.driver == "nvidia";
        case gpu_vendor::amd: return device.driver == "amdgpu";
        case gpu_vendor::intel: return device.driver == "i915" || device.driver == "xe";
    }
    return false;
}

std::vector<pci_device> gpu_devices(std::string const& root) {
    auto const folder = root + "/sys/bus/pci/devices/";
    std::vector<pci_device> devices;
    for (auto const& name : names_in(folder)) {
        auto const address = pci_address::parse(name);
        auto const device_class = read_hex(folder + name + "/class");
        // Most of a server's hundreds of devices are skipped here.
        if (!address || (device_class >> 16 != 0x03 && device_class >> 16 != 0x12)) continue;
        if (auto const vendor = gpu_vendor_of(read_hex(folder + name + "/vendor"), device_class))
            devices.push_back({*address, *vendor, link_name(folder + name + "/driver")});
    }
    std::ranges::sort(devices, [](auto const& a, auto const& b) { return a.address < b.address; });
    return devices;
}

/// Sets what NVIDIA's driver says. Returns false if this process may not use the GPU: containers and jobs block its device file,
/// and access() also checks the control group.
bool complete_nvidia(std::string const& root, gpu& g) {
    auto const text = read_text(root + "/proc/driver/nvidia/gpus/" + g.pci + "/information");
    auto const minor = value_of(text, "Device Minor");
    auto const file = root + "/dev/nvidia" + minor;
    if (minor.empty() || ::access(file.c_str(), R_OK | W_OK) != 0) return false;
    g.uuid = value_of(text, "GPU UUID");
    if (!g.uuid.starts_with("GPU-") || g.uuid.find('?') != std::string::npos) g.uuid.clear();  // "GPU-????": not read yet
    if (auto const model = value_of(text, "Model"); !model.empty()) g.name = model;
    return true;
}

/// Does the same for AMD; sets `order` to the place in the driver's order.
bool complete_amd(kfd_nodes const& nodes, pci_address const& address, found_gpu& found) {
    auto const node = nodes.find(address);
    if (node == nodes.end()) return false;
    found.device.uuid = fmt::format("GPU-{:016x}", node->second.unique_id);
    found.order = node->second.number;
    return true;
}

}  // namespace

void sysfs::set_place(gpu& g) const {
    auto const folder = root_ + "/sys/bus/pci/devices/" + g.pci;
    g.numa = read_number(folder + "/numa_node", -1);
    g.near = read_cpus(folder + "/local_cpulist");
    g.pci_path = path_steps(folder);
}

std::vector<nic> sysfs::read_nics() const {
    constexpr int arphrd_infiniband = 32;
    auto const folder = root_ + "/sys/class/net/";
    std::vector<nic> nics;
    for (auto const& name : names_in(folder)) {
        auto const at = folder + name;
        auto const device = at + "/device";
        if (!path_exists(device)) continue;
        nic n{name, read_number(device + "/numa_node", -1)};
        n.fabric = read_number(at + "/type", 0) == arphrd_infiniband || path_exists(device + "/infiniband") ||
                   path_exists(device + "/cxi");
        if (!n.fabric && read_text(at + "/operstate") == "down") continue;
        n.pci_path = path_steps(device);
        if (path_exists(at + "/master/bonding")) n.name = link_name(at + "/master");
        if (std::ranges::none_of(nics, [&](nic const& other) { return other.name == n.name; })) nics.push_back(std::move(n));
    }
    std::ranges::sort(nics, [](nic const& a, nic const& b) { return a.name < b.name; });
    return nics;
}

std::optional<std::vector<core>> sysfs::read_cores(cpuset const& allowed) const {
    auto const node_of = numa_nodes(root_);
    if (!node_of) return std::nullopt;
    std::vector<core> cores;
    std::set<int> seen;
    for (int const cpu : allowed.cpus) {
        if (seen.contains(cpu)) continue;
        auto const topology = root_ + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        core c{intersect(threads_beside(topology), allowed), unknown, read_number(topology + "physical_package_id", unknown)};
        if (!c.cpus.contains(cpu) || c.package == unknown) return std::nullopt;
        for (int const thread : c.cpus.cpus) {
            auto const node = node_of->find(thread);
            if (node == node_of->end() || !seen.insert(thread).second) return std::nullopt;
            c.numa = c.numa == unknown ? node->second : std::min(c.numa, node->second);
        }
        cores.push_back(std::move(c));
    }
    put_in_order(cores);
    return cores;
}

gpu_list sysfs::read_gpus() const {
    auto const devices = gpu_devices(root_);
    bool const any_amd = std::ranges::any_of(devices, [](auto const& d) { return d.vendor == gpu_vendor::amd; });
    auto const kfd = any_amd ? read_kfd(root_) : kfd_nodes();
    std::vector<found_gpu> found;
    std::string unusable;
    for (auto const& device : devices) {
        found_gpu f;
        f.device.vendor = device.vendor;
        f.device.pci = device.address.text();
        f.device.name = model_of(device.vendor);
        if (!has_its_driver(device)) {
            unusable += fmt::format("; {} {} has {}", f.device.name, f.device.pci,
                                    device.driver.empty() ? "no driver" : "the driver " + device.driver);
            continue;
        }
        bool const usable = device.vendor == gpu_vendor::nvidia ? complete_nvidia(root_, f.device)
                            : device.vendor == gpu_vendor::amd  ? complete_amd(kfd, device.address, f)
                                                                : true;
        if (!usable) {
            unusable += fmt::format("; {} {} is not for this process", f.device.name, f.device.pci);
            continue;
        }
        set_place(f.device);
        found.push_back(std::move(f));
    }
    gpu_list list;
    std::ranges::stable_sort(found, {}, &found_gpu::order);
    std::vector<gpu> gpus;
    for (auto& f : found) gpus.push_back(std::move(f.device));
    list.gpus = of_one_vendor(std::move(gpus));
    list.note = (list.gpus.empty() ? "no GPU with its driver in /sys/bus/pci/devices" : "from /sys/bus/pci/devices") + unusable;
    return list;
}

}  // namespace muster
