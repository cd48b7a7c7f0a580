// Adds what the site file knows about its nodes to a request for a placement.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/site/site.hpp"

namespace muster {

/// Returns `wanted` with the site's map of the hardware threads next to each GPU: `gpu_cpus` or, if the site says only which GPU
/// is nearest to ranks that fill the cores from 0 upwards (`nearest_gpu`), an equal part of its cores for each. Keeps the user's
/// settings. Ranks keep their GPUs in order, so that LOCAL_RANK is the index of a rank's device. Pure.
placement_request apply_site(placement_request wanted, site_node const& node);

/// Does the same for the site of that name (see load_site); an empty name, no site, changes nothing. Throws as load_site.
placement_request with_site(placement_request wanted, std::string const& name, environment const& variables);

/// Returns `choice` with the GPUs of the site's nodes, those of the job's queue, if the site allocates whole nodes. Throws as
/// load_site.
allocation_choice choice_with_site(allocation_choice choice, std::string const& name, environment const& variables);

/// Returns why this many GPUs distribute ranks unevenly over nodes of `per_node` GPUs: "6 GPUs do not fill …"; "" if they do not.
/// Pure.
std::string uneven_gpus(site const& where, int gpus, int per_node);

// The machines that came with muster: finds the file of one, and the one that resembles a site's nodes.

/// Returns folders that may contain NAME.xml, in order: the one installed with this program, the one this program was built from.
std::vector<std::filesystem::path> topology_search_path();

/// Returns the file that --topology means: `given` itself if it has a slash or ends in ".xml", else NAME.xml in the first of
/// `folders` that has it; `given` if none has.
std::string topology_file(std::string const& given, std::vector<std::filesystem::path> const& folders);

/// Returns the file of a machine like the nodes of `where`: the one that its site file names, else the one with the site's name;
/// empty if there is no such machine.
std::string topology_of_site(site const& where, std::vector<std::filesystem::path> const& folders);

}  // namespace muster
