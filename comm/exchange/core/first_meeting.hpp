// The first meeting of an exchange's ranks: what they tell each other before the first request.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/observe/timeline.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

// All are collective over the ranks of the exchange.

/// Throws comm_error (errc::usage) on all ranks unless all have given the same options.
void check_options(communicator& ranks, exchange_options const& options);

/// Each rank's host and device, for messages: "n1, GPU 0".
std::vector<std::string> gather_places(communicator& ranks, std::string const& device_name);

/// How far this rank's clock is from rank 0's.
clock_offset measure_clocks(communicator& ranks);

/// The identity of a rank that did not know which of the others are on its node. Not collective.
identity among_members(identity const& who, communicator const& ranks);

}  // namespace muster::detail
