// The requests that an exchange leaves behind when it ends: how each of them ends.
#pragma once

#include <exception>
#include <span>

#include "comm/exchange/batch/exchange_context.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

/// Of what has ended the exchange. `problem` is not null.
failure_text failure_of(std::exception_ptr const& problem);

/// All ranks have left: requests to leave end well, others fail since the exchange ended before them.
void end_left(std::span<pending_ptr const> left, identity const& who, exchange_context& shared);

/// All fail by `why`, each with its name.
void fail_left(std::span<pending_ptr const> left, failure_text const& why, identity const& who, exchange_context& shared);

}  // namespace muster::detail
