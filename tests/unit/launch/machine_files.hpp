// The machines of tests/fixtures/topology and what sites publish about them.
#pragma once

#include <string>

#include "launch/hardware/discover_topology.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/site/site.hpp"

namespace muster {

inline topology machine_of(std::string const& name) {
    return load_topology(MUSTER_FIXTURES "/topology/" + name + ".xml");
}

inline site site_of(std::string const& name) {
    return load_site(name, {MUSTER_SOURCE_DIR "/site-configs"});
}

}  // namespace muster
