// Tells Slurm from PBS on a machine that has the programs of both.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// PBS has its configuration here (PBS_CONF_FILE, else /etc/pbs.conf), and Slurm, whose programs may lie on a cluster of PBS, has none.
bool prefers_pbs(environment const& variables);

}  // namespace muster
