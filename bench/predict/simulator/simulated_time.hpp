// Simulated time, as the rank that calls it sees it: how it passes in memory and how a rank waits.
#pragma once

#include <cstddef>

namespace muster {

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
