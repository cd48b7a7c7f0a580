// The making of a world over shared memory: rendezvous, and probes of what the kernel allows between its ranks.
#pragma once

#include <string>

#include "comm/backend/comm_options.hpp"
#include "comm/shm/shm_world.hpp"
#include "pmix/identity.hpp"

namespace muster::shm {

/// Collective over the ranks that give the same `name`, within options.deadline. Throws as shm_rendezvous does.
world join_world(std::string const& name, identity const& who, comm_options const& options);

}  // namespace muster::shm
