// The first and the last steps of an exchange: what the ranks tell each other before the first request, and how the requests that are left end.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/observe/timeline.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

// The first meeting. All are collective over the ranks of the exchange.

/// Throws comm_error (errc::usage) on all ranks unless all have given the same options.
void check_options(communicator& ranks, exchange_options const& options);

/// Each rank's host and device, for messages: "n1, GPU 0".
std::vector<std::string> gather_places(communicator& ranks, std::string const& device_name);

/// How far this rank's clock is from rank 0's.
clock_offset measure_clocks(communicator& ranks);

/// The identity of a rank that did not know which of the others are on its node. Not collective.
identity among_members(identity const& who, communicator const& ranks);

// The requests that an exchange leaves behind when it ends.

/// Of what has ended the exchange. `problem` is not null.
failure_text failure_of(std::exception_ptr const& problem);

/// All ranks have left: requests to leave end well, others fail since the exchange ended before them.
void end_left(std::span<pending_ptr const> left, identity const& who, exchange_context& shared);

/// All fail by `why`, each with its name.
void fail_left(std::span<pending_ptr const> left, failure_text const& why, identity const& who, exchange_context& shared);

}  // namespace muster::detail
