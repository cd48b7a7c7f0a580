// Sums of f32 tensors through the exchange: as they are, and with f16 or bf16 on the wire.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/exchange/exchange.hpp"

namespace muster {

/// Measures each size (bytes of the tensor) and prints a table on rank 0. The rows take turns; a time is the median of `repetitions`
/// calls, each the slowest rank's. Every result is compared with the sum in double. Collective. Throws errc::internal for a wrong one,
/// comm_error.
void measure_wire(exchange& ranks, std::vector<std::uint64_t> const& sizes, int repetitions);

}  // namespace muster
