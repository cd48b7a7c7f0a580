// The signature of a collective: what must be equal on all ranks, in 64 bits and a count.
#pragma once

#include <cstdint>
#include <string>

#include "comm/backend/collective_backend.hpp"

namespace muster {

/// Kind, type, reduction and root as they are; factors and the counts of an allgather as a hash. Pure.
std::uint64_t signature_of(collective const& what) noexcept;

/// Whether the count of elements must be the same on all ranks too: not in an alltoall nor in an uneven allgather.
bool counts_are_equal(collective const& what) noexcept;

/// "allreduce (sum) of 10 elements of f32", for messages.
std::string describe_signature(std::uint64_t signature, std::uint64_t count);

}  // namespace muster
