// The placement at a site: adds what the site file knows about its nodes to a request.
#pragma once

#include <string>

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

/// `choice` with the GPUs of the site's nodes, if the site gives out whole ones. Throws as load_site.
allocation_choice choice_with_site(allocation_choice choice, std::string const& name, environment const& variables);

}  // namespace muster
