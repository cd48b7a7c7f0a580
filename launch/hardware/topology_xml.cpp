#include "launch/hardware/discover_topology.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include "base/process/files.hpp"
#include "base/throw_error.hpp"
#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/pci.hpp"

namespace muster {

void put_in_order(std::vector<core>& cores) {
    auto const place = [](core const& c) { return std::tuple(c.package, c.numa, c.cpus.cpus.front()); };
    std::ranges::sort(cores, [&](core const& a, core const& b) { return place(a) < place(b); });
}

std::vector<gpu> of_one_vendor(std::vector<gpu> found) {
    std::vector<gpu> gpus;
    for (auto const vendor : {gpu_vendor::nvidia, gpu_vendor::amd, gpu_vendor::intel}) {
        for (auto& one : found) {
            if (one.vendor != vendor) continue;
            one.index = static_cast<int>(gpus.size());
            gpus.push_back(std::move(one));
        }
        if (!gpus.empty()) break;
    }
    return gpus;
}

cpuset topology::allowed() const {
    cpuset all;
    for (auto const& c : cores) all.add(c.cpus);
    return all;
}

namespace {

constexpr std::size_t longest_file_bytes = std::size_t{64} << 20;

pci_address address_of(hwloc_obj_t device) {
    auto const& pci = device->attr->pcidev;
    return {pci.domain, pci.bus, pci.dev, pci.func};
}

/// Returns the same steps that sysfs shows: "pci0000:00", "0000:00:01.1", …, the device.
std::vector<std::string> path_steps(hwloc_obj_t device) {
    std::vector<std::string> steps{address_of(device).text()};
    for (auto o = device->parent; o != nullptr && o->type == HWLOC_OBJ_BRIDGE; o = o->parent) {
        auto const& bridge = o->attr->bridge;
        if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
            steps.push_back(pci_address{bridge.upstream.pci.domain, bridge.upstream.pci.bus, bridge.upstream.pci.dev,
                                        bridge.upstream.pci.func}
                                .text());
        else
            steps.push_back(fmt::format("pci{:04x}:{:02x}", bridge.downstream.pci.domain, bridge.downstream.pci.secondary_bus));
    }
    std::ranges::reverse(steps);
    return steps;
}

/// Returns the NUMA node to which all CPUs next to the device belong; -1 if they belong to several. It checks the first one,
/// since a GPU's own memory may be a node with the same CPUs.
int numa_near(hwloc_topology_t t, hwloc_obj_t device) {
    auto const above = ::hwloc_get_non_io_ancestor_obj(t, device);
    if (above == nullptr || above->nodeset == nullptr || ::hwloc_bitmap_weight(above->nodeset) < 1) return -1;
    auto const first = static_cast<unsigned>(::hwloc_bitmap_first(above->nodeset));
    auto const numa = ::hwloc_get_numanode_obj_by_os_index(t, first);
    return numa != nullptr && ::hwloc_bitmap_isincluded(above->cpuset, numa->cpuset) ? static_cast<int>(first) : -1;
}

std::string info_of(hwloc_obj_t object, char const* key) {
    auto const* const value = ::hwloc_obj_get_info_by_name(object, key);
    return value != nullptr ? value : "";
}

/// Returns the GPUs in PCI order.
std::vector<gpu> read_gpus(hwloc_topology_t t) {
    std::vector<std::pair<pci_address, gpu>> found;
    for (hwloc_obj_t o = nullptr; (o = ::hwloc_get_next_pcidev(t, o)) != nullptr;) {
        auto const vendor = gpu_vendor_of(o->attr->pcidev.vendor_id, std::uint32_t{o->attr->pcidev.class_id} << 8);
        if (!vendor) continue;
        gpu g;
        g.vendor = *vendor;
        g.pci = address_of(o).text();
        g.name = info_of(o, "PCIDevice");
        if (g.name.empty()) g.name = fmt::format("{} GPU", to_string(*vendor));
        g.numa = numa_near(t, o);
        if (auto const above = ::hwloc_get_non_io_ancestor_obj(t, o)) g.near = cpus_of(above);
        g.pci_path = path_steps(o);
        for (auto child = o->io_first_child; child != nullptr; child = child->next_sibling)
            if (auto const uuid = info_of(child, "NVIDIAUUID"); !uuid.empty()) g.uuid = uuid;
        found.emplace_back(address_of(o), std::move(g));
    }
    std::ranges::sort(found, [](auto const& a, auto const& b) { return a.first < b.first; });
    std::vector<gpu> gpus;
    for (auto& [address, g] : found) gpus.push_back(std::move(g));
    return gpus;
}

std::vector<nic> read_nics(hwloc_topology_t t) {
    constexpr std::uint32_t infiniband = 0x0207;
    std::vector<nic> nics;
    for (hwloc_obj_t o = nullptr; (o = ::hwloc_get_next_osdev(t, o)) != nullptr;) {
        if (o->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || o->parent == nullptr || o->parent->type != HWLOC_OBJ_PCI_DEVICE)
            continue;
        nic n{o->name != nullptr ? o->name : "", numa_near(t, o)};
        auto const device = o->parent;
        n.fabric = device->attr->pcidev.class_id == infiniband || n.name.starts_with("hsn");
        for (auto child = device->io_first_child; child != nullptr; child = child->next_sibling)
            if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) n.fabric = true;
        n.pci_path = path_steps(device);
        if (!n.name.empty()) nics.push_back(std::move(n));
    }
    std::ranges::sort(nics, [](nic const& a, nic const& b) { return a.name < b.name; });
    return nics;
}

bool load(hwloc_topology_t t, std::string const& xml) {
    // hwloc's length includes the terminating zero.
    return ::hwloc_topology_set_xmlbuffer(t, xml.c_str(), static_cast<int>(xml.size() + 1)) == 0 && ::hwloc_topology_load(t) == 0;
}

/// Returns whether hwloc can read it without a crash: it trusts such files, and a missing attribute makes it read through a null
/// pointer. So a child tries first.
bool can_be_read(std::string const& xml) {
    constexpr unsigned most_seconds = 20;
    pid_t const child = ::fork();
    if (child < 0) throw_system("fork", "to read a topology file");
    if (child == 0) {
        rlimit const none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        int const null = ::open("/dev/null", O_WRONLY);
        ::dup2(null, STDERR_FILENO);
        for (int const number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) ::signal(number, SIG_DFL);
        ::alarm(most_seconds);
        bool fine = false;
        try {
            fine = load(make_hwloc(hwloc_depth::devices).get(), xml);
        } catch (std::exception const&) {
        }
        ::_exit(fine ? 0 : 1);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) throw_system("waitpid", "for the reader of a topology file");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

topology read_topology(std::string const& xml, std::string const& name) {
    auto const handle = make_hwloc(hwloc_depth::devices);
    auto const refuse = [&] {
        throw_error(errc::invalid_data, "{} is not a topology that hwloc {} can read; write one with: lstopo FILE.xml", name,
                    HWLOC_API_VERSION >> 16);
    };
    if (xml.empty() || xml.size() > longest_file_bytes || !can_be_read(xml) || !load(handle.get(), xml)) refuse();
    topology t;
    t.cores = read_cores(handle.get(), nullptr);
    if (t.cores.empty()) refuse();
    t.gpus = of_one_vendor(read_gpus(handle.get()));
    t.gpus_in_node = static_cast<int>(t.gpus.size());
    t.nics = read_nics(handle.get());
    t.gpu_note = t.gpus.empty() ? fmt::format("{} has no GPU among its PCI devices; give --gpus", name)
                                : fmt::format("from the PCI devices of {}", name);
    return t;
}

topology load_topology(std::string const& xml_path) {
    if (!path_exists(xml_path))
        throw_error(errc::not_found, "no topology file {}; write one with: lstopo {}", xml_path, xml_path);
    if (is_folder(xml_path)) throw_error(errc::invalid_data, "{} is a folder", xml_path);
    std::ifstream file(xml_path, std::ios::binary);
    std::string xml;
    std::string piece(std::size_t{1} << 16, '\0');
    while (file && xml.size() <= longest_file_bytes) {
        file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        xml.append(piece, 0, static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad() || !file.is_open()) throw_error(errc::io, "cannot read {}", xml_path);
    if (xml.size() > longest_file_bytes) throw_error(errc::invalid_data, "{} is larger than 64 MiB: no topology file", xml_path);
    auto t = read_topology(xml, xml_path);
    t.host = std::filesystem::path(xml_path).stem();
    return t;
}

}  // namespace muster
