// The environment of a rank that an engine started on another node.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// What the launcher's shell had (`of_launcher`, without what told who the launcher is) and what the engine gave this process
/// (`of_node`), in one: the launcher's values, as if the rank had been started from there, but the node's own for what belongs to
/// the node (TMPDIR, HOSTNAME, its GPUs, …) or to the engine (SLURM_*, PMIX_*, OMPI_*, PMI_*, PALS_*, …), and whatever only the
/// node has. `own_step` false: the engine runs one daemon a node (mpirun, Hydra), so Slurm's numbers of a step and task are the
/// daemon's and are left out. Pure.
environment rank_environment(environment const& of_launcher, environment const& of_node, bool own_step);

}  // namespace muster
