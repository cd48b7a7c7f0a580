// The arithmetic of the FAKE NCCL: in double, one rank after the other; not as a GPU rounds.
#pragma once

#include <cstddef>
#include <span>

#include "comm/nccl/library/nccl_library.hpp"

namespace muster::fake {

std::size_t size_of(nccl::type element) noexcept;

/// The number that lies there.
double read_element(void const* from, nccl::type element);

/// One rank's input of a reduction.
struct reduction_input {
    std::byte const* data = nullptr;
    double factor = 1;  ///< of a scaled sum
};

/// `out[i]` becomes the reduction of all inputs' elements `first + i`, for `count` of them.
void reduce(std::span<reduction_input const> inputs, std::size_t first, std::size_t count, nccl::type element, nccl::op how,
            void* out);

}  // namespace muster::fake
