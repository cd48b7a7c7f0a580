#include "launch/placement/this_node.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/placement/binding_steps.hpp"
#include "launch/scheduler/host_choice.hpp"
#include "launch/system/host_name.hpp"
#include "launch/system/network.hpp"

namespace muster {

topology discover_here(environment const& variables, hwloc_handle* kept) {
    return discover_topology(short_host_name(), current_affinity(), variables, kept);
}

node node_of(topology const& machine, placement_request const& wanted) {
    auto const cores = usable_cores(machine, wanted).size();
    return local_allocation(machine.host, static_cast<int>(cores), static_cast<int>(machine.gpus.size())).nodes.front();
}

bool is_this_host(node const& candidate) {
    auto const is_number = [](std::string const& name) { return name.find_first_not_of("0123456789.:") == std::string::npos; };
    for (auto const& name : {candidate.name, candidate.address}) {
        if (name.empty()) continue;
        if (name == "localhost" || name.starts_with("127.") || name == "::1") return true;
        if (is_number(name) ? !interface_that_has(name).empty() : same_host(short_name(name), short_host_name())) return true;
    }
    return false;
}

}  // namespace muster
