#include "launch/site/site_machine.hpp"

#include <system_error>

#include "base/process/this_process.hpp"

namespace muster {

namespace fs = std::filesystem;

std::vector<fs::path> topology_search_path() {
    auto const program = self_program();
    std::vector<fs::path> folders{program.parent_path().parent_path() / "share" / "muster" / "topologies"};
    // As for site files: behind an installed program the source tree may be anybody's.
    if (program.string().starts_with(MUSTER_BUILD_DIR "/"))
        folders.emplace_back(MUSTER_SITE_CONFIGS_SOURCE "/../tests/fixtures/topology");
    return folders;
}

std::string topology_file(std::string const& given, std::vector<fs::path> const& folders) {
    if (given.find('/') != std::string::npos || given.ends_with(".xml")) return given;
    for (auto const& folder : folders) {
        std::error_code failed;
        if (auto const file = folder / (given + ".xml"); fs::exists(file, failed)) return file.string();
    }
    return given;
}

std::string topology_of_site(site const& where, std::vector<fs::path> const& folders) {
    if (!where.node.topology.empty()) return topology_file(where.node.topology, folders);
    auto file = topology_file(where.name, folders);
    return file == where.name ? std::string() : file;
}

}  // namespace muster
