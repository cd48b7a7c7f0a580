// The first and the last steps of an exchange: what the ranks send each other before the first request, and how the remaining requests end.
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

// The first meeting of the ranks. All these functions are collective over the ranks of the exchange.

/// Throws comm_error (errc::usage) on all ranks unless all have given the same options.
void check_options(communicator& ranks, exchange_options const& options);

/// Returns each rank's host and device, for messages: "n1, GPU 0".
std::vector<std::string> gather_places(communicator& ranks, std::string const& device_name);

/// Returns the offset of this rank's clock from rank 0's.
clock_offset measure_clocks(communicator& ranks);

/// Returns the identity of a rank that did not know which other ranks are on its node. Not collective.
identity among_members(identity const& who, communicator const& ranks);

// The requests that an exchange leaves behind when it ends.

/// Returns the failure that `problem`, which is not null, describes.
failure_text failure_of(std::exception_ptr const& problem);

/// All ranks have left: requests to leave end well, others fail since the exchange ended before them.
void end_left(std::span<pending_ptr const> left, identity const& who, exchange_context& shared);

/// Fails all of them because of `why`, each with its name.
void fail_left(std::span<pending_ptr const> left, failure_text const& why, identity const& who, exchange_context& shared);

}  // namespace muster::detail
