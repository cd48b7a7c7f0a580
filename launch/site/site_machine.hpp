// The machines that came with muster: finds the file of one, and the one that a site's nodes are like.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/site/site.hpp"

namespace muster {

/// Folders that may hold NAME.xml, first one first: the one installed with this program, the one this program was built from.
std::vector<std::filesystem::path> topology_search_path();

/// The file that --topology means: `given` itself with a slash or ending in ".xml", else NAME.xml in the first of `folders` that
/// has it; `given` if none has.
std::string topology_file(std::string const& given, std::vector<std::filesystem::path> const& folders);

/// The file of a machine like the nodes of `where`: the one that its site file names, else the one of the site's own name; empty
/// if there is no machine.
std::string topology_of_site(site const& where, std::vector<std::filesystem::path> const& folders);

}  // namespace muster
