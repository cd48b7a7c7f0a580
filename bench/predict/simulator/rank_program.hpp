// The program of one simulated rank: allreduces, or steps of training, by muster's communicator.
#pragma once

#include "bench/predict/simulation_job.hpp"

namespace muster {

/// What the ranks share: they are contexts of one process, and run one at a time.
struct simulated_world {
    simulation_job const& job;
    simulation_result result;
    std::vector<float> memory;  ///< the gradients of every rank, in one place
};

/// Called by each rank's actor.
void run_rank(simulated_world& world, int rank);

}  // namespace muster
