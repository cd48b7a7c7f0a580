// Neutral elements: values that a reduction leaves unchanged.
#pragma once

#include <cstddef>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster::detail {

/// Writes `count` of them to host memory: 0 for a sum, 1 for a product, the largest value for a minimum, …
void fill_neutral(dtype type, reduction how, void* to, std::size_t count);

}  // namespace muster::detail
