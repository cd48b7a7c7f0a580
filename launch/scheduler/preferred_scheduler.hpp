// Tells Slurm, PBS and Flux from each other on a machine that has the programs of several.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// PBS has its configuration here (PBS_CONF_FILE, else /etc/pbs.conf), and Slurm, whose programs may lie on a cluster of PBS, has none.
bool prefers_pbs(environment const& variables);

/// Flux, whose programs also lie where it is used within jobs of others, is the scheduler here: this process is in an instance of it (FLUX_URI),
/// or the system has one (/run/flux/local).
bool prefers_flux(environment const& variables);

}  // namespace muster
