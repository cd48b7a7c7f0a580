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

/// Returns whether the two share memory.
inline bool overlap(tensor_view const& a, tensor_view const& b) noexcept {
    auto const first = reinterpret_cast<std::uintptr_t>(a.data), second = reinterpret_cast<std::uintptr_t>(b.data);
    return a.count != 0 && b.count != 0 && first < second + b.bytes() && second < first + a.bytes();
}

/// Checks the address of a tensor of a known type; `role` is its name in the message.
std::string fault_of_memory(tensor_view const& view, std::string_view role);

/// Checks the fields that this kind of collective uses.
std::string fault_of(collective const& what, argument_place const& place);

/// Checks the ranks given to communicator::include.
std::string fault_of_set(std::span<int const> ranks, int size);

}  // namespace muster::detail

// The signature of a collective holds what must be equal on all ranks, in 64 bits and a count.

namespace muster {

/// Holds kind, type, reduction and root as they are, and a hash of the factors and of an allgather's counts. Pure.
std::uint64_t signature_of(collective const& what) noexcept;

/// Returns whether all ranks must give the same count of elements: not in an alltoall nor in an uneven allgather.
bool counts_are_equal(collective const& what) noexcept;

/// Returns "allreduce (sum) of 10 elements of f32", for messages.
std::string describe_signature(std::uint64_t signature, std::uint64_t count);

}  // namespace muster
