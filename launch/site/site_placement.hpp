// The placement at a site: adds what the site file knows about its nodes to a request.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/site/site.hpp"

namespace muster {

/// `wanted` with the site's map of the hardware threads next to each GPU: `gpu_cpus`, or, where the site says only which GPU is
/// nearest to ranks that fill the cores from 0 upwards (`nearest_gpu`), an equal part of its cores for each. What the user says
/// himself stays. Ranks keep their GPUs in order, so that LOCAL_RANK is the index of a rank's device. Pure.
placement_request apply_site(placement_request wanted, site_node const& node);

/// The same for the site of that name (as load_site takes it); no site, an empty name, changes nothing. Throws as load_site.
placement_request with_site(placement_request wanted, std::string const& name, environment const& variables);

/// `choice` with the GPUs of the site's nodes, those of the job's queue, if the site gives out whole ones. Throws as load_site.
allocation_choice choice_with_site(allocation_choice choice, std::string const& name, environment const& variables);

/// Why that many GPUs make ranks divided unevenly over nodes of `per_node` GPUs: "6 GPUs do not fill …"; "" if they do not. Pure.
std::string uneven_gpus(site const& where, int gpus, int per_node);

// The machines that came with muster: finds the file of one, and the one that a site's nodes are like.

/// Folders that may hold NAME.xml, first one first: the one installed with this program, the one this program was built from.
std::vector<std::filesystem::path> topology_search_path();

/// The file that --topology means: `given` itself with a slash or ending in ".xml", else NAME.xml in the first of `folders` that
/// has it; `given` if none has.
std::string topology_file(std::string const& given, std::vector<std::filesystem::path> const& folders);

/// The file of a machine like the nodes of `where`: the one that its site file names, else the one of the site's own name; empty
/// if there is no machine.
std::string topology_of_site(site const& where, std::vector<std::filesystem::path> const& folders);

}  // namespace muster
