// The places of ranks: tells each one's host and the cores that it may run on.
#pragma once

#include <vector>

#include "bench/training/train_record.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// Collective; the same on all ranks.
std::vector<rank_location> places_of_ranks(communicator& ranks);

}  // namespace muster
