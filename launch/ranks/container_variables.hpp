// Variables by which a rank in a container of apptainer or singularity finds what lies on its node.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Where `command` starts such a container ("apptainer exec …", also behind other words): the folder of the engine's PMIx server, if it is
/// on this node, is put to APPTAINER_BIND or SINGULARITY_BIND, so that ranks share the server's memory instead of asking it for each value;
/// and UCX opens shared memory by name, since ranks in several user namespaces may not open each other's descriptors. What the user has
/// set stays. Any other command: nothing.
void set_container_variables(environment& variables, std::vector<std::string> const& command);

}  // namespace muster
