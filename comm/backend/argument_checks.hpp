// Checks of a collective's arguments for every backend. Each returns what is wrong, or "". Pure.
#pragma once

#include <cstdint>
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

// The signature of a collective: what must be equal on all ranks, in 64 bits and a count.

namespace muster {

/// Kind, type, reduction and root as they are; factors and the counts of an allgather as a hash. Pure.
std::uint64_t signature_of(collective const& what) noexcept;

/// Whether the count of elements must be the same on all ranks too: not in an alltoall nor in an uneven allgather.
bool counts_are_equal(collective const& what) noexcept;

/// "allreduce (sum) of 10 elements of f32", for messages.
std::string describe_signature(std::uint64_t signature, std::uint64_t count);

}  // namespace muster
