// The parts of the simulator: the platform, and simulated time as a rank sees it.
#pragma once

#include <simgrid/forward.h>
#include <cstddef>
#include <vector>

#include "bench/predict/simulation.hpp"

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

}  // namespace muster
