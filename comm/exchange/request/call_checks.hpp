// Call checks find wrong arguments of an exchange's call, on this rank alone.
#pragma once

#include <string>

#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

/// What is wrong with tensors, numbers and root of a request on a set of so many ranks, `rank` being this one there; or "". Pure.
std::string fault_of(pending_request const& what, int ranks, int rank);

/// The same of an allreduce of one tensor.
std::string fault_of(single_allreduce const& what);

}  // namespace muster::detail
