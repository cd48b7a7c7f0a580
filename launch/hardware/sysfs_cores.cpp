#include <algorithm>
#include <map>
#include <set>

#include "base/process/files.hpp"
#include "launch/hardware/sysfs.hpp"
#include "launch/hardware/sysfs_files.hpp"

namespace muster {

using namespace sysfs_files;

namespace {

constexpr int unknown = -1;

/// The lowest node that each CPU is in; nothing where the nodes are not told, or one's memory may not be used: the cores then
/// belong to other nodes than the files say, which hwloc works out.
std::optional<std::map<int, int>> numa_nodes(std::string const& root) {
    auto const folder = root + "/sys/devices/system/node/";
    auto const nodes = read_cpus(folder + "online");  // a list in the same form
    auto const usable = list_in(value_of(read_text_file(root + "/proc/self/status"), "Mems_allowed_list"));
    if (nodes.empty() || intersect(nodes, usable) != nodes) return std::nullopt;
    std::map<int, int> node_of;
    for (int const node : nodes.cpus)
        for (int const cpu : read_cpus(folder + "node" + std::to_string(node) + "/cpulist").cpus) node_of.try_emplace(cpu, node);
    return node_of;
}

/// The hardware threads of the core that a CPU is in; Linux before 5.3 has only the second name.
cpuset threads_beside(std::string const& topology) {
    auto threads = read_cpus(topology + "core_cpus_list");
    return threads.empty() ? read_cpus(topology + "thread_siblings_list") : threads;
}

}  // namespace

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

}  // namespace muster
