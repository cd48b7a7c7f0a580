// The nodes that muster plan shows: those of the job; outside of any, this machine or ones like a site's.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/placement/plan.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

struct planned_nodes {
    allocation given;
    known_machines known;
    std::vector<std::string> notes;
};

/// Outside of any job, with --site and without --topology, nodes are like the site's, as many as `wanted` needs; with
/// --scheduler local this machine is shown. Throws as
/// read_allocation, load_topology, load_site and discover_here; errc::usage for --gpus without a machine to put them into.
planned_nodes find_planned_nodes(settings_result const& given, placement_request const& wanted, environment const& variables);

/// `wanted` with a rank for each GPU of `--site NAME --gpus N` without --topology, where the user says no number of ranks: N GPUs of
/// the site's nodes, as muster script takes them. Pure.
placement_request with_gpus_of_site(placement_request wanted, settings_result const& given);

/// As many nodes like `one` as `wanted` needs, "polaris1", "polaris2", ...; one is just called that. Pure.
std::vector<node> nodes_like(node const& one, placement_request const& wanted);

}  // namespace muster
