// Checks of a collective's arguments for every backend. Each returns what is wrong, or "". Pure.
#pragma once

#include <span>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::detail {

/// This rank's place in the communicator, and what memory its backend reaches.
struct argument_place {
    int rank = 0;
    int size = 1;
    bool host_memory = true;
    bool device_memory = false;
};

/// For every kind, by the fields that it uses.
std::string fault_of(collective const& what, argument_place const& place);

/// For communicator::include.
std::string fault_of_set(std::span<int const> ranks, int size);

}  // namespace muster::detail
