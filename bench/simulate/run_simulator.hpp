// The start of the simulator, a program of its own, for one job.
#pragma once

#include "base/environment.hpp"
#include "bench/simulate/simulation_job.hpp"

namespace muster {

/// Throws errc::unavailable where the simulator was not built, errc::peer_failed where it fails.
simulation_result run_simulator(simulation_job const& job, environment const& variables);

}  // namespace muster
