// The parts of the simulator: the platform, simulated time as a rank sees it, and the program of one rank.
#pragma once

#include <cstddef>
#include <simgrid/forward.h>
#include <vector>

#include "bench/predict/simulation_job.hpp"

namespace muster {

/// The ranks' hosts, in their order, on a platform that lives as long as the engine.
std::vector<simgrid::s4u::Host*> build_platform(simgrid::s4u::Engine& engine, platform_model const& model, int ranks);

/// Messages above this take their time but carry nothing, so that 1,024 ranks fit into one machine.
inline constexpr std::size_t payload_limit = 65536;  // no less: SMPI frees what it buffered, up to this size, in copying it

/// Reading and writing so many bytes at the platform's rate, see set_memory_rate().
void pass_memory_time(std::size_t bytes);
void set_memory_rate(double gbs) noexcept;

/// Lets simulated time pass until a message is through that this rank polled for in vain.
void wait_for_messages();

/// The scratch memory of messages that carry nothing is shared by all ranks.
void let_payloads_go();

/// What the ranks share: they are contexts of one process, and run one at a time.
struct simulated_world {
    simulation_job const& job;
    simulation_result result;
    std::vector<float> memory;  ///< the gradients of every rank, in one place
};

/// Steps of training by muster's communicator. Called by each rank's actor.
void run_rank(simulated_world& world, int rank);

}  // namespace muster
