// How many elements of a batch of one tensor go where, in host and in device memory alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/negotiation/coordinator.hpp"
#include "comm/exchange/request/pending.hpp"

namespace muster::detail {

/// allgather: elements from each rank. Pure.
std::vector<std::size_t> gather_counts(agreement const& agreed);

/// alltoall, as rank `me` of so many sees it.
struct alltoall_counts {
    alltoall_counts(agreement const& agreed, int ranks, int me);

    std::size_t row = 0;                     ///< elements of a row
    std::vector<std::size_t> send, receive;  ///< elements to and from each rank
    std::vector<std::int64_t> rows;          ///< that come from each rank
    std::size_t sent = 0, total = 0;         ///< elements in all: sent, received
};

/// Notes how many rows came from each rank, and returns the caller's output if it has `count` elements. Else null: the exchange
/// gives memory, and a wrong size is a fault that is told when the others have got what they came for.
void* own_output(pending& unit, communicator const& ranks, std::size_t count, std::vector<std::int64_t> rows);

}  // namespace muster::detail
