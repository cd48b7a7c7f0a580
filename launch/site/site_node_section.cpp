// Reads what a site file says of a node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "launch/site/site_sections.hpp"

namespace muster {

namespace {

constexpr int most_nodes_of_site = 1'000'000;
constexpr int most_gpus = 1024;
constexpr int most_cpus = 65536;

/// The hardware threads of a list such as "0-7,32-39"; none if it is not one.
cpuset read_cpus(std::string const& list) {
    try {
        return cpuset::from_list(list);
    } catch (parse_error const&) {
        return {};
    }
}

/// Which GPU each rank is nearest to if ranks fill the cores from 0 upwards, which the map of cores implies.
std::vector<int> order_by_first_cpu(std::vector<int> const& first_cpus) {
    std::vector<int> gpus(first_cpus.size());
    std::iota(gpus.begin(), gpus.end(), 0);
    std::sort(gpus.begin(), gpus.end(),
              [&](int a, int b) { return first_cpus[static_cast<std::size_t>(a)] < first_cpus[static_cast<std::size_t>(b)]; });
    return gpus;
}

void check_gpu_cpus(toml_reader const& in, site_node const& node) {
    std::set<int> seen;
    std::vector<int> firsts;
    for (auto const& list : node.gpu_cpus) {
        int const most = node.cpus.value_or(most_cpus);
        auto const near = read_cpus(list);
        if (near.empty() || near.cpus.back() >= most)
            in.refuse("gpu_cpus", fmt::format("'{}' is no list of hardware threads below {}, such as \"0-7,32-39\"", list, most));
        for (int const cpu : near.cpus)
            if (!seen.insert(cpu).second)
                in.refuse("gpu_cpus", fmt::format("hardware thread {} is named twice; remove one", cpu));
        firsts.push_back(near.cpus.front());
    }
    if (!node.nearest_gpu.empty() && !firsts.empty() && order_by_first_cpu(firsts) != node.nearest_gpu)
        in.refuse("nearest_gpu",
                  "does not agree with 'gpu_cpus': ranks that fill the cores from 0 upwards meet the GPUs in another order");
}

void check_per_gpu(toml_reader const& in, std::string_view key, std::size_t size, std::optional<int> gpus) {
    if (size == 0) return;
    if (!gpus) in.refuse(key, fmt::format("'{}' needs the number of GPUs too: 'gpus'", key));
    if (size != static_cast<std::size_t>(*gpus)) in.refuse(key, fmt::format("'{}' has {} entries for {} GPUs", key, size, *gpus));
}

}  // namespace

site_node read_site_node(toml_document const& document, toml::table const& table) {
    constexpr std::array<std::string_view, 10> known{"count",    "gpus",     "gpu_model",   "cores",   "cpus",
                                                     "gpu_cpus", "gpu_numa", "nearest_gpu", "nic_gpu", "topology"};
    toml_reader const in(document, table, "node", known);
    site_node node;
    node.count = in.integer("count", 1, most_nodes_of_site);
    node.gpus = in.integer("gpus", 1, most_gpus);
    node.gpu_model = in.text("gpu_model").value_or("");
    node.cores = in.integer("cores", 1, most_cpus);
    node.cpus = in.integer("cpus", 1, most_cpus);
    if (node.cores && node.cpus && *node.cpus < *node.cores)
        in.refuse("cpus", "'cpus' is smaller than 'cores'; give the number of hardware threads");
    int const last_gpu = node.gpus.value_or(most_gpus) - 1;
    node.gpu_cpus = in.texts("gpu_cpus");
    node.gpu_numa = in.integers("gpu_numa", 0, most_cpus);
    node.nearest_gpu = in.integers("nearest_gpu", 0, last_gpu);
    node.nic_gpu = in.integers("nic_gpu", 0, last_gpu);
    node.topology = in.text("topology").value_or("");
    check_per_gpu(in, "gpu_cpus", node.gpu_cpus.size(), node.gpus);
    check_per_gpu(in, "gpu_numa", node.gpu_numa.size(), node.gpus);
    check_per_gpu(in, "nearest_gpu", node.nearest_gpu.size(), node.gpus);
    if (std::set<int>(node.nearest_gpu.begin(), node.nearest_gpu.end()).size() != node.nearest_gpu.size())
        in.refuse("nearest_gpu", "a GPU is named twice; remove one");
    check_gpu_cpus(in, node);
    return node;
}

}  // namespace muster
