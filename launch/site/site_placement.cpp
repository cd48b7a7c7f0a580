#include "launch/site/site_placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/cpuset.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"

namespace muster {

namespace {

/// Returns, for each GPU, the part of the cores that holds the ranks nearest to it. Hardware threads are numbered as Linux does
/// on most machines: the first ones of all cores, then the second ones.
std::vector<std::string> parts_by_order(site_node const& node) {
    int const gpus = static_cast<int>(node.nearest_gpu.size());
    if (gpus == 0 || !node.cores || *node.cores % gpus != 0) return {};
    int const part = *node.cores / gpus;
    int const threads = node.cpus && *node.cpus % *node.cores == 0 ? *node.cpus / *node.cores : 1;
    std::vector<std::string> parts(static_cast<std::size_t>(gpus));
    for (int place = 0; place < gpus; ++place) {
        cpuset cpus;
        for (int thread = 0; thread < threads; ++thread)
            for (int c = place * part; c < (place + 1) * part; ++c) cpus.cpus.push_back(thread * *node.cores + c);
        parts[static_cast<std::size_t>(node.nearest_gpu[static_cast<std::size_t>(place)])] = cpus.to_list();
    }
    return parts;
}

}  // namespace

placement_request apply_site(placement_request wanted, site_node const& node) {
    if (wanted.gpu_cpus.empty()) wanted.gpu_cpus = node.gpu_cpus.empty() ? parts_by_order(node) : node.gpu_cpus;
    return wanted;
}

placement_request with_site(placement_request wanted, std::string const& name, environment const& variables) {
    if (name.empty()) return wanted;
    return apply_site(std::move(wanted), load_site(name, site_search_path(variables)).node);
}

namespace {

/// A job that came through a routing queue may be in one that the file names only as its route.
site at_queue_of_job(site where, environment const& variables) {
    auto const now = variables.get_or("PBS_QUEUE", "");
    bool const named = std::ranges::find(where.queues, now, &site_queue::name) != where.queues.end();
    return with_nodes_of_queue(std::move(where), named ? now : variables.get_or("PBS_O_QUEUE", ""));
}

}  // namespace

std::string uneven_gpus(site const& where, int gpus, int per_node) {
    if (gpus <= per_node || gpus % per_node == 0) return {};
    return fmt::format("{} GPUs do not fill whole nodes of {} ({} GPUs each), and ranks would be divided unevenly", gpus,
                       where.name, per_node);
}

allocation_choice choice_with_site(allocation_choice choice, std::string const& name, environment const& variables) {
    if (name.empty()) return choice;
    auto const where = at_queue_of_job(load_site(name, site_search_path(variables)), variables);
    if (where.header.whole_nodes && where.node.gpus != 0) choice.gpus_of_each = where.node.gpus;
    return choice;
}

namespace fs = std::filesystem;

std::vector<fs::path> topology_search_path() {
    auto const program = self_program();
    std::vector<fs::path> folders{program.parent_path().parent_path() / "share" / "muster" / "topologies"};
    // Another user may own the source tree where muster is installed, so it counts only in the build tree.
    if (program.string().starts_with(MUSTER_BUILD_DIR "/"))
        folders.emplace_back(MUSTER_SITE_CONFIGS_SOURCE "/../tests/fixtures/topology");
    return folders;
}

std::string topology_file(std::string const& given, std::vector<fs::path> const& folders) {
    if (given.find('/') != std::string::npos || given.ends_with(".xml")) return given;
    for (auto const& folder : folders) {
        if (auto const file = folder / (given + ".xml"); path_exists(file)) return file.string();
    }
    return given;
}

std::string topology_of_site(site const& where, std::vector<fs::path> const& folders) {
    if (!where.node.topology.empty()) return topology_file(where.node.topology, folders);
    auto file = topology_file(where.name, folders);
    return file == where.name ? std::string() : file;
}

}  // namespace muster
