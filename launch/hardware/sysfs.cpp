#include "launch/hardware/sysfs.hpp"

#include <algorithm>
#include <filesystem>

#include "launch/hardware/sysfs_files.hpp"

namespace muster {

namespace fs = std::filesystem;
using namespace sysfs_files;

device_place sysfs::place_of(std::string const& pci) const {
    auto const folder = root_ + "/sys/bus/pci/devices/" + pci;
    return {read_number(folder + "/numa_node", -1), read_cpus(folder + "/local_cpulist"), path_steps(folder)};
}

std::vector<nic> sysfs::read_nics() const {
    constexpr int arphrd_infiniband = 32;
    auto const folder = root_ + "/sys/class/net/";
    std::vector<nic> nics;
    std::error_code ignored;
    for (auto const& name : names_in(folder)) {
        auto const at = folder + name;
        auto const device = at + "/device";
        if (!fs::exists(device, ignored)) continue;
        nic n{name, read_number(device + "/numa_node", -1)};
        n.fabric = read_number(at + "/type", 0) == arphrd_infiniband || fs::exists(device + "/infiniband", ignored) ||
                   fs::exists(device + "/cxi", ignored);
        if (!n.fabric && read_text(at + "/operstate") == "down") continue;
        n.pci_path = path_steps(device);
        if (fs::exists(at + "/master/bonding", ignored)) n.name = link_name(at + "/master");
        if (std::none_of(nics.begin(), nics.end(), [&](nic const& other) { return other.name == n.name; }))
            nics.push_back(std::move(n));
    }
    std::sort(nics.begin(), nics.end(), [](nic const& a, nic const& b) { return a.name < b.name; });
    return nics;
}

}  // namespace muster
